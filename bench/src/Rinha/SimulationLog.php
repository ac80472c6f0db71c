<?php

declare(strict_types=1);

namespace Weft\Bench\Rinha;

use Weft\Bench\BenchmarkException;
use Weft\Bench\Load\Latency;
use Weft\Bench\Percentile;

/** The log of a Gatling run: every request with its times in milliseconds. */
final class SimulationLog
{
    /**
     * @param array<string, list<int>> $times by name of the request, in milliseconds, ascending
     * @param array<string, int> $failures number of requests by message
     * @param float $seconds from the start of the first request to the end of the last
     */
    private function __construct(private readonly array $times, public readonly array $failures, public readonly float $seconds)
    {
    }

    /** @throws BenchmarkException when there is no request in it */
    public static function read(string $file): self
    {
        $times = $failures = [];
        [$first, $last] = [PHP_INT_MAX, 0];
        foreach (new \SplFileObject($file) as $line) {
            $fields = explode("\t", rtrim((string) $line));
            if ($fields[0] !== 'REQUEST') {
                continue;
            }
            [, , $name, $start, $end, $status] = $fields;
            $times[$name][] = (int) $end - (int) $start;
            [$first, $last] = [min($first, (int) $start), max($last, (int) $end)];
            if ($status !== 'OK') {
                $message = "$name: " . ($fields[6] ?? 'no message');
                $failures[$message] = ($failures[$message] ?? 0) + 1;
            }
        }
        $times === [] && throw new BenchmarkException("$file has no requests");
        array_walk($times, static fn (array &$list): bool => sort($list));

        return new self($times, $failures, ($last - $first) / 1000);
    }

    public function requests(?string $name = null): int
    {
        return count($this->sorted($name));
    }

    public function failed(): int
    {
        return array_sum($this->failures);
    }

    public function mean(?string $name = null): float
    {
        $times = $this->sorted($name);

        return $times === [] ? 0.0 : array_sum($times) / count($times);
    }

    /** @param string|null $name of the requests, all by default */
    public function percentile(float $percent, ?string $name = null): float
    {
        return Percentile::of($this->sorted($name), $percent);
    }

    public function latency(?string $name = null): Latency
    {
        return Latency::of($this->sorted($name), 1.0);
    }

    /** @return list<string> */
    public function names(): array
    {
        return array_keys($this->times);
    }

    /** @return list<int> */
    private function sorted(?string $name): array
    {
        if ($name !== null) {
            return $this->times[$name] ?? [];
        }
        $all = array_merge(...array_values($this->times));
        sort($all);

        return $all;
    }
}
