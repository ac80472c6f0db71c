<?php

declare(strict_types=1);

namespace Weft\Runtime\Internal;

/**
 * One decision to cancel, shared by everything it reaches.
 *
 * @internal
 */
final class Cancellation
{
    /** Whether anybody was interrupted by it. Who has a result by then and ends without waiting again is not. */
    public bool $wasFelt = false;

    public function __construct(
        public readonly string $reason,
        public readonly ?\Throwable $cause = null,
    ) {
    }
}
