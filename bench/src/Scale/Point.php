<?php

declare(strict_types=1);

namespace Weft\Bench\Scale;

/** One place on a curve, and how it is measured. */
final class Point
{
    /**
     * @param string $series name of the line it is on
     * @param \Closure(string): array<string, float> $measure receives the log file; returns the measurements by name of the line, with
     *        an empty name for `$series`
     */
    public function __construct(
        public readonly Curve $curve,
        public readonly string $series,
        public readonly int $x,
        public readonly \Closure $measure,
    ) {
    }

    public function label(): string
    {
        return sprintf('%-12s %-12s %s', $this->curve->value, $this->series, number_format($this->x));
    }
}
