<?php

declare(strict_types=1);

namespace Weft\Bench\Noop;

/** A contender: how it is started, and how its duration is read. */
final class Contender
{
    /**
     * @param \Closure(string): list<string> $command for `publish` or `consume`
     * @param \Closure(string): float $seconds from its output
     */
    public function __construct(
        public readonly string $name,
        public readonly \Closure $command,
        public readonly \Closure $seconds,
    ) {
    }
}
