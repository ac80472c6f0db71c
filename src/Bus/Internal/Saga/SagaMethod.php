<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Saga;

use Weft\Bus\Saga\UnmatchedPolicy;

/**
 * The role of a method of a saga.
 *
 * @internal
 */
final class SagaMethod
{
    /**
     * @param bool      $starts   whether a saga that is not there is started
     * @param bool      $joinExisting    whether one that is there takes the message
     * @param UnmatchedPolicy $missing  where it is not there and not started
     * @param UnmatchedPolicy $existing where it is there and does not take the message
     * @param bool      $times    whether it is a time-out, of no consequence when it comes too late
     */
    public function __construct(
        public readonly bool $starts,
        public readonly bool $joinExisting,
        public readonly UnmatchedPolicy $missing = UnmatchedPolicy::DeadLetter,
        public readonly UnmatchedPolicy $existing = UnmatchedPolicy::DeadLetter,
        public readonly bool $times = false,
    ) {}
}
