<?php

declare(strict_types=1);

namespace Weft\Workers\Internal;

/** @internal */
enum State: string
{
    /** Has been started and has not said that it is ready. */
    case Starting = 'starting';
    case Ready = 'ready';
    /** Has been told to end. */
    case Draining = 'draining';
}
