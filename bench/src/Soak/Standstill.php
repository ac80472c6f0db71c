<?php

declare(strict_types=1);

namespace Weft\Bench\Soak;

/** Detects a run that makes no progress. */
final class Standstill
{
    private int $last = -1;
    private float $since = 0.0;

    /** @param float $seconds without any progress after which it counts as one */
    public function __construct(private readonly float $seconds = 60.0)
    {
    }

    /** Whether the count has not changed for too long. */
    public function is(int $count): bool
    {
        $now = hrtime(true) / 1e9;
        if ($count !== $this->last) {
            [$this->last, $this->since] = [$count, $now];
        }

        return $now - $this->since > $this->seconds;
    }
}
