<?php

declare(strict_types=1);

namespace Weft\Bench\Report;

use Weft\Bench\Spread;

/** What each benchmark came to: Weft against the best of its peers. */
final class Summary
{
    public const TITLES = [
        'bus' => 'Message bus',
        'http' => 'HTTP',
        'grpc' => 'gRPC',
        'pool' => 'Connection pool',
        'rinha' => 'Rinha de Backend',
    ];

    /** Requests whose ratios stand beside that of hello with 64 connections: those that favour a peer too. */
    private const HTTP_CASES = ['hello' => 'hello', 'query' => 'a query', 'queries-20' => '20 queries', 'static' => 'a static file'];
    /** Ends the name of a load of gRPC that does not last as long as the clock of CPU time needs. */
    private const TOO_SHORT = ', 1,000 calls, ghz';

    /** @param array<string, array<string, mixed>> $results see {@see Sources::load()} */
    public function __construct(private readonly array $results)
    {
    }

    /** @return array<string, Tile|null> by benchmark; null where there is nothing to compare */
    public function tiles(): array
    {
        return [
            'bus' => $this->bus(),
            'http' => $this->http(),
            'grpc' => $this->grpc(),
            'pool' => $this->pool(),
            'rinha' => $this->rinha(),
        ];
    }

    private function bus(): ?Tile
    {
        $runs = $this->runs('bus', ['transport' => 'rabbitmq', 'failed' => null]);
        $weft = self::median(self::where($runs, ['system' => 'weft', 'mode' => 'plain']), 'seconds');
        $safe = self::median(self::where($runs, ['system' => 'weft', 'mode' => 'safe']), 'seconds');
        $peer = self::best(self::where($runs, ['mode' => 'plain']), 'seconds');
        if ($weft === null || $peer === null) {
            return null;
        }
        [$name, $seconds] = $peer;
        $detail = sprintf(
            '%s commands stored and their events drained in %s s against %s s',
            number_format(max(array_column($runs, 'rows'))),
            // As the page of the bus rounds: printf makes 49.09 of 49.095.
            number_format($weft, 2),
            number_format($seconds, 2),
        );

        return new Tile(
            self::times($seconds / $weft),
            "as fast as $name, the fastest peer",
            $detail . ($safe === null ? '' : '; with inbox, outbox, confirms and persistent messages ' . self::times($seconds / $safe)),
        );
    }

    private function http(): ?Tile
    {
        $cost = fn (string $case, int $connections, string $weft = 'weft'): ?array => self::compare(
            $this->runs('http', ['case' => $case, 'protocol' => 'http/1.1', 'connections' => $connections]),
            'cpu_us_per_request',
            $weft,
        );
        $hello = $cost('hello', 64);
        if ($hello === null) {
            return null;
        }
        $connections = array_unique(array_column($this->runs('http', ['case' => 'hello', 'protocol' => 'http/1.1']), 'connections'));
        sort($connections);
        $ratios = [];
        foreach (self::HTTP_CASES as $case => $title) {
            $of = static fn (string $weft): array => array_map(static fn (int $connections): ?array => $cost($case, $connections, $weft), $connections);
            $named = array_filter(["$title " => $of('weft'), 'with shared round trips ' => $of('weft-pipelined')], array_filter(...));
            $parts = array_map(static fn (string $name, array $costs): string => $name . implode(', ', array_map(self::ratio(...), $costs)), array_keys($named), $named);
            $parts === [] || $ratios[] = implode(', ', $parts);
        }

        return new Tile(
            self::times($hello['ratio']),
            "the requests of {$hello['peer']} per CPU second, with 64 connections",
            'hello over HTTP/1.1: ' . self::costs($hello)
                . '; against the best peer of each load, with ' . self::list($connections) . ' connections: ' . implode('; ', $ratios),
        );
    }

    /** Against grpc-go, under the least favourable of the loads that keep the server's core busy, which ghz does not. */
    private function grpc(): ?Tile
    {
        $ratios = [];
        foreach (['Get', 'List'] as $call) {
            $busy = self::least($this->grpcCosts('h2load', $call, 'go'));
            if ($busy === null) {
                return null;
            }
            $ratios[$call] = $busy;
        }
        $ghz = array_column([...$this->grpcCosts('ghz', 'Get', 'go'), ...$this->grpcCosts('ghz', 'List', 'go')], 'ratio');
        $tonic = self::least([...$this->grpcCosts('h2load', 'Get', 'tonic'), ...$this->grpcCosts('h2load', 'List', 'tonic')]);
        $least = self::least($ratios);
        $details = array_map(static fn (string $call, array $cost): string => "$call " . self::costs($cost), array_keys($ratios), $ratios);

        return new Tile(
            self::times($least['ratio']),
            "the calls of {$least['peer']} per CPU second",
            'a core kept busy, the least favourable of 1, 8 and 50 connections: ' . implode(', ', $details)
                . ($tonic === null ? '' : '; against tonic, in Rust, ' . self::times($tonic['ratio']))
                . ($ghz === [] ? '' : '; called by ghz, which leaves the server waiting, ' . self::times(min($ghz)) . ' to ' . self::times(max($ghz))),
        );
    }

    /**
     * With 100 calls at a time.
     *
     * @return list<array{ratio: float, peer: string, weft: float, theirs: float}> one for each load
     */
    private function grpcCosts(string $tool, string $call, string $peer): array
    {
        $runs = $this->runs('grpc', ['tool' => $tool, 'call' => $call, 'concurrency' => 100, 'failed' => null]);
        $runs = array_values(array_filter($runs, static fn (array $run): bool => in_array($run['system'], ['weft', $peer], true)));
        $presets = array_filter(array_unique(array_column($runs, 'preset')), static fn (string $preset): bool => !str_ends_with($preset, self::TOO_SHORT));

        return array_values(array_filter(array_map(
            static fn (string $preset): ?array => self::compare(self::where($runs, ['preset' => $preset]), 'cpu_us_per_call'),
            $presets,
        )));
    }

    /**
     * @template T of array{ratio: float}
     *
     * @param array<array-key, T> $costs
     *
     * @return T|null
     */
    private static function least(array $costs): ?array
    {
        usort($costs, static fn (array $one, array $other): int => $one['ratio'] <=> $other['ratio']);

        return $costs[0] ?? null;
    }

    private function pool(): ?Tile
    {
        $gain = function (string $preset): ?array {
            $runs = $this->runs('pool', ['preset' => $preset]);
            $on = self::median(self::where($runs, ['pool' => true]), 'rps');
            $off = self::median(self::where($runs, ['pool' => false]), 'rps');

            return $on === null || $off === null || $off === 0.0 ? null : [$on, $off];
        };
        $queries = $gain('10 queries');
        $compute = $gain('20 ms of CPU');
        if ($queries === null) {
            return null;
        }
        [$on, $off] = $queries;
        $pooled = $this->runs('pool', ['pool' => true]);
        $failed = count($pooled) - count(self::where($pooled, ['failed' => null]));
        $detail = sprintf(
            'ten queries at a time in each request: %s requests/s against %s%s; %s errors with the pool under all loads',
            number_format($on),
            number_format($off),
            $compute === null ? '' : sprintf('; a query and 20 ms of computing: %.2f×', $compute[0] / $compute[1]),
            number_format(array_sum(array_column($pooled, 'errors'))),
        );

        return new Tile(
            sprintf('%.1f×', $on / $off),
            'the requests with the pool that there are without',
            $detail . ($failed === 0 ? '' : ", $failed of " . count($pooled) . ' runs failed'),
        );
    }

    private function rinha(): ?Tile
    {
        $result = $this->results['rinha'] ?? null;
        if ($result === null) {
            return null;
        }
        [$run, $other] = $result['runs'] + [null, null];
        $detail = sprintf(
            '%s of %s people stored, %s, %s of %s requests failed, %s',
            number_format($run['people']),
            number_format($run['expected_people']),
            $run['inserts'] === 'single' ? 'each in a transaction of its own' : 'sharing transactions',
            number_format($run['ko']),
            number_format($run['requests']),
            $result['limited'] ? 'within 1.5 CPU and 3.0 GB' : 'without limits',
        );

        return new Tile(
            "{$run['p99_ms']} ms",
            'for 99 of 100 requests',
            $detail . ($other === null ? '' : "; with inserts that share statements {$other['p99_ms']} ms") . ($result['scale'] === 1.0 ? '' : ', a shortened load'),
        );
    }

    /**
     * Weft's cost against the lowest of its peers.
     *
     * @param list<array<string, mixed>> $runs
     * @param string $system Weft's name among them
     *
     * @return array{ratio: float, peer: string, weft: float, theirs: float}|null
     */
    private static function compare(array $runs, string $field, string $system = 'weft'): ?array
    {
        $weft = self::median(self::where($runs, ['system' => $system]), $field);
        $peer = self::best($runs, $field);

        return $weft === null || $weft === 0.0 || $peer === null ? null : [
            'ratio' => $peer[1] / $weft,
            'peer' => $peer[0],
            'weft' => $weft,
            'theirs' => $peer[1],
        ];
    }

    /**
     * @param list<array<string, mixed>> $runs
     *
     * @return array{string, float}|null the peer with the lowest median
     */
    private static function best(array $runs, string $field): ?array
    {
        $best = null;
        foreach (array_unique(array_column($runs, 'system')) as $system) {
            $median = self::median(self::where($runs, ['system' => $system]), $field);
            if (!str_starts_with($system, 'weft') && $median !== null && ($best === null || $median < $best[1])) {
                $best = [$system, $median];
            }
        }

        return $best;
    }

    /** @param list<array<string, mixed>> $runs */
    private static function median(array $runs, string $field): ?float
    {
        $values = array_filter(array_column($runs, $field), is_numeric(...));

        return $values === [] ? null : Spread::of(array_values($values))->median;
    }

    /**
     * @param array<string, mixed> $wanted
     *
     * @return list<array<string, mixed>>
     */
    private function runs(string $benchmark, array $wanted): array
    {
        return self::where($this->results[$benchmark]['runs'] ?? [], $wanted);
    }

    /**
     * @param list<array<string, mixed>> $runs
     * @param array<string, mixed> $wanted values by field; null: the run has no such field
     *
     * @return list<array<string, mixed>>
     */
    private static function where(array $runs, array $wanted): array
    {
        return array_values(array_filter($runs, static function (array $run) use ($wanted): bool {
            foreach ($wanted as $field => $value) {
                if (($run[$field] ?? null) !== $value) {
                    return false;
                }
            }

            return true;
        }));
    }

    /** @param array{weft: float, theirs: float} $cost */
    private static function costs(array $cost): string
    {
        return number_format($cost['weft'], 1) . ' µs of CPU against ' . number_format($cost['theirs'], 1) . ' µs';
    }

    /** @param non-empty-list<int> $values */
    private static function list(array $values): string
    {
        $last = array_pop($values);

        return $values === [] ? (string) $last : implode(', ', $values) . " and $last";
    }

    /** @param array{ratio: float, peer: string, weft: float, theirs: float}|null $cost */
    private static function ratio(?array $cost): string
    {
        return $cost === null ? '–' : self::times($cost['ratio']);
    }

    private static function times(float $ratio): string
    {
        return sprintf('%.2f×', $ratio);
    }
}
