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
     */
    public function __construct(
        public readonly int $requests,
        public readonly float $seconds,
        public readonly Latency $latency,
        public readonly int $errors,
    ) {
    }

    public function perSecond(): float
    {
        return $this->requests / $this->seconds;
    }
}
