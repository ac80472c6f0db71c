<?php

declare(strict_types=1);

namespace Weft\Runtime\Internal;

/**
 * One cancellation, shared by every task and scope that it reaches.
 *
 * @internal
 */
final class Cancellation
{
    /** Whether it has interrupted a task. A task that already has its result and ends without waiting again is not interrupted. */
    public bool $wasDelivered = false;

    public function __construct(
        public readonly string $reason,
        public readonly ?\Throwable $cause = null,
    ) {
    }
}
