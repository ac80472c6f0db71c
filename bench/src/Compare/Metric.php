<?php

declare(strict_types=1);

namespace Weft\Bench\Compare;

/** What is compared of a benchmark's runs. */
final class Metric
{
    /** What tells the loads and contenders of a benchmark apart; everything else in a run is a measurement. */
    public const IDENTITY = [
        'bus' => ['system', 'mode', 'transport', 'persistent', 'confirms'],
        'bus-matrix' => ['system', 'mode', 'transport', 'persistent', 'confirms'],
        'pool' => ['preset', 'pool'],
        'http' => ['system', 'case', 'protocol', 'connections'],
        'grpc' => ['system', 'preset'],
        'scale' => ['curve', 'series', 'x'],
    ];

    private function __construct(public readonly string $field, public readonly bool $lessIsBetter)
    {
    }

    /** @return list<self> */
    public static function of(string $benchmark): array
    {
        $less = static fn (string $field): self => new self($field, true);
        $more = static fn (string $field): self => new self($field, false);

        return match ($benchmark) {
            'bus', 'bus-matrix' => [$less('seconds'), $less('cpu_s'), $less('rss_mib')],
            'pool' => [$more('rps'), $less('p99_ms'), $less('cpu_s')],
            'http' => [$more('rps'), $less('cpu_us_per_request'), $less('p99_ms'), $less('rss_mib')],
            'grpc' => [$more('rps'), $less('cpu_us_per_call'), $less('p99_ms'), $less('rss_mib')],
            'scale' => [$more('y')],
        };
    }
}
