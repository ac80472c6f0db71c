<?php

declare(strict_types=1);

namespace Weft\Grpc\Client;

/** The load balancing policy of a channel with several servers. */
enum Balancing: string
{
    /** Uses the first server that accepts a connection, until it is lost. */
    case PickFirst = 'pick_first';
    /** Uses all servers in turn, including every address of a name. */
    case RoundRobin = 'round_robin';
}
