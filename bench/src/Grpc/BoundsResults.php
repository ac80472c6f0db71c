<?php

declare(strict_types=1);

namespace Weft\Bench\Grpc;

use Weft\Bench\Page;
use Weft\Bench\ResultsFile;
use Weft\Bench\Table;

/** The results of {@see Bounds}, compared with their targets. */
final class BoundsResults
{
    /** Delayed acknowledgements and Nagle's algorithm show as 40 ms. */
    private const STEP_MS = 35.0;
    private const TAIL_MS = 10.0;
    private const GROWTH_MIB = 4.0;
    private const FAR_MB_S = 100.0;
    private const FAR_SHARE = 0.8;
    private const IDLE_KIB = 20.0;

    /**
     * @param array<string, string> $versions by product
     * @param array<string, array<array-key, mixed>> $facts by part
     * @param array<string, string> $failed why a part has no facts
     */
    public function __construct(
        public readonly string $machine,
        public readonly array $versions,
        private readonly array $facts,
        private readonly array $failed = [],
    ) {
    }

    public static function load(string $path): self
    {
        return self::of(ResultsFile::load($path));
    }

    /** @param array<string, mixed> $fields of a results file */
    public static function of(array $fields): self
    {
        return new self($fields['machine'], $fields['versions'], $fields['runs'], $fields['failed'] ?? []);
    }

    public function save(string $path): void
    {
        ResultsFile::save($path, ['machine' => $this->machine, 'versions' => $this->versions, 'runs' => $this->facts, 'failed' => $this->failed]);
    }

    /** @return array{streams: Table, bounds: Table} */
    public function tables(): array
    {
        $streams = array_map(static fn (array $row): array => [
            (string) $row['streams'],
            number_format($row['rps']),
            ...array_map(static fn (string $percentile): string => sprintf('%.2f', $row['latency_ms'][$percentile]), ['p50', 'p99', 'p99.9', 'p100']),
        ], $this->facts['streams'] ?? []);

        return [
            'streams' => new Table(['streams on one connection', 'calls/s', 'p50 ms', 'p99 ms', 'p99.9 ms', 'slowest ms'], $streams),
            'bounds' => new Table(['what', 'measured', 'wanted', 'met'], $this->rows()),
        ];
    }

    /** @return array{bounds: list<list<string>>, streams: list<array<string, mixed>>} for the page of all results */
    public function toArray(): array
    {
        return ['bounds' => $this->rows(), 'streams' => $this->facts['streams'] ?? []];
    }

    /** Of the page. */
    public function section(): string
    {
        ['streams' => $streams, 'bounds' => $bounds] = $this->tables();
        $versions = Page::versions($this->versions);

        return <<<MARKDOWN
            ## The limits of one server

            Weft alone, the same server on one core, beside the targets. Machine: {$this->machine}. Versions: $versions.

            {$bounds->markdown()}
            How long calls of `Get` take by the number of streams that share a connection, by h2load: Nagle's algorithm or a delayed
            acknowledgement would be a step of 40 ms.

            {$streams->markdown()}
            The tail is that of calls which come at a steady rate on 50 connections; grpc-go stands beside it with the same share of its own
            rate. The distance is a proxy that holds every byte back for 25 ms, in PHP and beside the load: what passes without the distance is its
            own limit. A stream is no faster than its window per round trip, which is what `streamWindow` is for.
            MARKDOWN;
    }

    /** @return list<string> the missed targets */
    public function failures(): array
    {
        $missed = array_filter($this->bounds(), static fn (array $bound): bool => !$bound[3]);

        return array_values(array_map(static fn (array $bound): string => "$bound[0]: $bound[1], wanted $bound[2]", $missed));
    }

    /** @return list<list<string>> what, measured, wanted, and whether it is met; nothing may be wanted */
    private function rows(): array
    {
        return array_map(static fn (array $bound): array => [$bound[0], $bound[1], $bound[2], $bound[2] === '' ? '' : ($bound[3] ? 'yes' : 'NO')], $this->bounds());
    }

    /** @return list<array{string, string, string, bool}> what, measured, wanted, and whether it is so */
    private function bounds(): array
    {
        $bounds = [];
        foreach ($this->facts as $part => $facts) {
            array_push($bounds, ...$this->$part($facts));
        }
        foreach ($this->failed as $part => $reason) {
            $bounds[] = [$part, "failed: $reason", 'to be measured', false];
        }

        return $bounds;
    }

    /** @return list<array{string, string, string, bool}> */
    private function streams(array $rows): array
    {
        return array_map(static fn (array $row): array => [
            "no step of 40 ms with {$row['streams']} on one connection",
            sprintf('p99.9 %.2f ms', $row['latency_ms']['p99.9']),
            sprintf('below %d ms', self::STEP_MS),
            $row['latency_ms']['p99.9'] < self::STEP_MS,
        ], $rows);
    }

    /** @return list<array{string, string, string, bool}> */
    private function tail(array $rows): array
    {
        $bounds = [];
        foreach ($rows as $row) {
            // The others show the influence of load and machine.
            $counts = $row['system'] === 'weft';
            $bounds[] = [
                sprintf('%s at %d%% of %s calls/s, %s at a time', $row['system'], round($row['rps'] / $row['full_rps'] * 100), number_format($row['full_rps']), number_format($row['at_a_time'])),
                sprintf('p99 %.2f ms', $row['latency_ms']['p99']),
                $counts ? sprintf('below %d ms', self::TAIL_MS) : '',
                !$counts || $row['latency_ms']['p99'] < self::TAIL_MS,
            ];
        }

        return $bounds;
    }

    /** @return list<array{string, string, string, bool}> */
    private function talk(array $facts): array
    {
        $server = $facts['server_after_mib'] - $facts['server_before_mib'];
        $client = ($facts['late_kib'] - $facts['early_kib']) / 1024;

        return [[
            sprintf('%s messages each way in one call, %.1f s', number_format($facts['messages']), $facts['seconds']),
            sprintf('server %.1f → %.1f MiB, client %.1f → %.1f MiB', $facts['server_before_mib'], $facts['server_after_mib'], $facts['early_kib'] / 1024, $facts['late_kib'] / 1024),
            sprintf('at most %d MiB more', self::GROWTH_MIB),
            max($server, $client) <= self::GROWTH_MIB,
        ]];
    }

    /** @return list<array{string, string, string, bool}> */
    private function link(array $rows): array
    {
        $bounds = [];
        foreach ($rows as $row) {
            foreach (['upload', 'download'] as $direction) {
                [$near, $far] = [$row["near_{$direction}_mb_s"], $row["far_{$direction}_mb_s"]];
                // The default window is too small for such a distance: it shows the purpose of the option.
                $counts = $row['stream_window'] > 1 << 20;
                $bounds[] = [
                    sprintf('%s over a round trip of %d ms, window of %s KiB', $direction, $row['round_trip_ms'], number_format($row['stream_window'] / 1024)),
                    sprintf('%.1f MB/s; %.1f without the distance', $far, $near),
                    $counts ? sprintf('%d MB/s, or %d%%', self::FAR_MB_S, self::FAR_SHARE * 100) : '',
                    !$counts || $far >= min(self::FAR_MB_S, self::FAR_SHARE * $near),
                ];
            }
        }

        return $bounds;
    }

    /** @return list<array{string, string, string, bool}> */
    private function idle(array $facts): array
    {
        return [[number_format($facts['connections']) . ' idle connections', sprintf('%.1f KiB each', $facts['kib_each']), sprintf('at most %d KiB', self::IDLE_KIB), $facts['kib_each'] <= self::IDLE_KIB]];
    }

    /** @return list<array{string, string, string, bool}> */
    private function soak(array $facts): array
    {
        $resident = $facts['resident_mib'];
        // The first third is warm-up.
        $warm = $resident[intdiv(count($resident), 3)];
        $late = end($resident);

        return [[
            sprintf('%d s of calls of every kind, %s of them', $facts['seconds'], number_format($facts['calls'])),
            sprintf('%.1f → %.1f MiB', $warm, $late),
            sprintf('at most %d MiB more', self::GROWTH_MIB),
            $late - $warm <= self::GROWTH_MIB,
        ]];
    }
}
