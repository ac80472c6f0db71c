<?php

declare(strict_types=1);

namespace Weft\Bench\Guard;

use Weft\Bench\Table;

/** What was counted, beside what it may be. */
final class Limits
{
    /** What a count may be above its limit. */
    private const TOLERANCE = 0.03;

    /** The same in calls or instructions: on a busy machine a few more wake-ups share the work of thousands of messages. */
    private const LEAST = 0.05;

    /**
     * @param array<string, array<string, float>> $counts by load and kind
     * @param array<string, array<string, float>> $limits the same
     */
    public function __construct(private readonly array $counts, private readonly array $limits)
    {
    }

    public function table(): Table
    {
        $rows = [];
        foreach ($this->counts as $load => $kinds) {
            foreach ($kinds as $kind => $count) {
                $limit = $this->limits[$load][$kind] ?? null;
                $rows[] = [
                    $load,
                    $kind,
                    number_format($count, $count < 100 ? 2 : 0),
                    $limit === null ? '–' : number_format($limit, $limit < 100 ? 2 : 0),
                    $limit === null ? '–' : sprintf('%+.1f %%', ($count / $limit - 1) * 100),
                ];
            }
        }

        return new Table(['load', 'each', 'counted', 'limit', 'difference'], $rows);
    }

    /** @return list<string> what is above its limit, or has none */
    public function exceeded(): array
    {
        $exceeded = [];
        foreach ($this->counts as $load => $kinds) {
            foreach ($kinds as $kind => $count) {
                $limit = $this->limits[$load][$kind] ?? null;
                if ($limit === null) {
                    $exceeded[] = "$load: $kind have no limit; --write sets it";
                } elseif ($count > $limit + max($limit * self::TOLERANCE, self::LEAST)) {
                    $exceeded[] = sprintf('%s: %s rose from %s to %s, by %.1f %%', $load, $kind, round($limit, 2), round($count, 2), ($count / $limit - 1) * 100);
                }
            }
        }

        return $exceeded;
    }
}
