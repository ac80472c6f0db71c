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
    public function __construct(
        public readonly string $reason,
        public readonly ?\Throwable $cause = null,
    ) {
    }
}
