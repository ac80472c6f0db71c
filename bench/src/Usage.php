<?php

declare(strict_types=1);

namespace Weft\Bench;

/** What one program cost from start to exit. */
final class Usage
{
    /**
     * @param float $seconds wall time including process start
     * @param float $cpuSeconds user and system time of the process
     * @param float $peakMemory highest resident set in MiB
     */
    public function __construct(
        public readonly float $seconds,
        public readonly float $cpuSeconds,
        public readonly float $peakMemory,
        public readonly string $output,
    ) {
    }
}
