<?php

declare(strict_types=1);

namespace Weft\Bench\Noop;

/** One who takes part: how it is started, and how it says how long it took. */
final class Contender
{
    /**
     * @param \Closure(string): list<string> $command for `publish` or `consume`
     * @param \Closure(string): float $seconds from what it printed
     */
    public function __construct(
        public readonly string $name,
        public readonly \Closure $command,
        public readonly \Closure $seconds,
    ) {
    }
}
