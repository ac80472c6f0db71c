<?php

declare(strict_types=1);

namespace Weft\Bench\Load;

/** What a load generator saw. */
final class Load
{
    /**
     * @param int $requests answered in the measured time
     * @param float $seconds measured time
     * @param int $errors answers other than 2xx, and failures of connections
     * @param array<string, float> $times what else it tells of the latency, in milliseconds: `mean_ms`, `deviation_ms`, `fastest_ms`
     */
    public function __construct(
        public readonly int $requests,
        public readonly float $seconds,
        public readonly Latency $latency,
        public readonly int $errors,
        public readonly array $times = [],
    ) {
    }

    public function perSecond(): float
    {
        return $this->requests / $this->seconds;
    }
}
