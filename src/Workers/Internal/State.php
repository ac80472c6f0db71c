<?php

declare(strict_types=1);

namespace Weft\Workers\Internal;

/** @internal */
enum State: string
{
    /** Started and not ready yet. */
    case Starting = 'starting';
    case Ready = 'ready';
    /** Asked to end, or ending on its own. */
    case Draining = 'draining';
}
