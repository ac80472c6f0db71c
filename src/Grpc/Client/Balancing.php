<?php

declare(strict_types=1);

namespace Weft\Grpc\Client;

/** Which of several servers gets a call. */
enum Balancing: string
{
    /** The first that can be connected to, as long as it is there. */
    case PickFirst = 'pick_first';
    /** Each in turn: every address that a name has. */
    case RoundRobin = 'round_robin';
}
