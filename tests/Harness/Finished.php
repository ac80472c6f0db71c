<?php

declare(strict_types=1);

namespace Weft\Tests\Harness;

/** A job that has ended. */
final class Finished
{
    public function __construct(
        public readonly Job $job,
        public readonly Result $result,
        public readonly float $seconds,
        public readonly string $directory,
    ) {
    }
}
