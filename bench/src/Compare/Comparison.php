<?php

declare(strict_types=1);

namespace Weft\Bench\Compare;

use Weft\Bench\BenchmarkException;
use Weft\Bench\Table;

/** The runs of a benchmark on two commits. */
final class Comparison
{
    /** @var list<array{0: string, 1: Metric, 2: Ratio|null, 3: int, 4: int}> load, metric, ratio of new to old, runs of each */
    private array $lines = [];

    /** @var list<string> contenders and loads that only one of the two has */
    public array $onlyOnce = [];

    /** @var list<string> contenders and loads of which more runs failed than before */
    public array $failures = [];

    /**
     * @param array<string, mixed> $old results file
     * @param array<string, mixed> $new results file
     * @param float $tolerance how much slower is still called the same, such as 0.03
     *
     * @throws BenchmarkException when the two cannot be compared
     */
    public function __construct(private readonly string $benchmark, array $old, array $new, private readonly float $tolerance)
    {
        self::requireSameMachine($old['machine'], $new['machine']);
        self::requireSameSize($benchmark, $old['runs'], $new['runs']);
        $old = $this->byLoad($old['runs']);
        $new = $this->byLoad($new['runs']);
        $this->onlyOnce = [...array_keys(array_diff_key($old, $new)), ...array_keys(array_diff_key($new, $old))];
        foreach (array_intersect_key($old, $new) as $load => $before) {
            $failed = self::failed($new[$load]);
            if ($failed > self::failed($before)) {
                $this->failures[] = "$load: $failed of " . count($new[$load]) . ' runs failed, before ' . self::failed($before) . ' of ' . count($before);
            }
            foreach (Metric::of($benchmark, $before) as $metric) {
                $this->compare($load, $metric, $metric->numbers($before), $metric->numbers($new[$load]));
            }
        }
    }

    /** Also true for a run that fails now. */
    public function becameWorse(): bool
    {
        return $this->failures !== [] || in_array('SLOWER', array_map($this->verdict(...), $this->lines), true);
    }

    /** How many pairs of measurements there are, and how many of them have enough runs. */
    public function counts(): string
    {
        $compared = count(array_filter($this->lines, static fn (array $line): bool => $line[2] !== null));

        return sprintf('%s: %d of %d comparisons have enough runs', $this->benchmark, $compared, count($this->lines));
    }

    public function hasEnoughRuns(): bool
    {
        return array_filter($this->lines, static fn (array $line): bool => $line[2] !== null) !== [];
    }

    /** @param bool $all also unchanged values */
    public function table(bool $all): Table
    {
        $lines = array_filter($this->lines, fn (array $line): bool => $all || in_array($this->verdict($line), ['SLOWER', 'faster'], true));

        return new Table(['load', 'metric', 'new ÷ old', '95 % interval', 'runs', 'verdict'], array_values(array_map(fn (array $line): array => [
            $line[0],
            $line[1]->name(),
            $line[2] === null ? '–' : sprintf('%.3f', $line[2]->estimate),
            $line[2] === null ? '–' : sprintf('%.3f–%.3f', $line[2]->low, $line[2]->high),
            "{$line[3]}, {$line[4]}",
            $this->verdict($line),
        ], $lines)));
    }

    /**
     * @param list<float|int> $old
     * @param list<float|int> $new
     */
    private function compare(string $load, Metric $metric, array $old, array $new): void
    {
        if ($old !== [] && $new !== []) {
            $this->lines[] = [$load, $metric, Ratio::of($old, $new), count($old), count($new)];
        }
    }

    /** @param array{0: string, 1: Metric, 2: Ratio|null, 3: int, 4: int} $line */
    private function verdict(array $line): string
    {
        [, $metric, $ratio] = $line;
        if ($ratio === null) {
            return 'too few runs';
        }
        [$best, $worst] = $metric->lessIsBetter ? [$ratio->low, $ratio->high] : [1 / $ratio->high, 1 / $ratio->low];

        return match (true) {
            $best > 1 + $this->tolerance => 'SLOWER',
            $worst < 1 / (1 + $this->tolerance) => 'faster',
            default => 'same',
        };
    }

    /**
     * @param list<array<string, mixed>> $runs
     *
     * @return array<string, list<array<string, mixed>>>
     */
    private function byLoad(array $runs): array
    {
        $groups = [];
        foreach ($runs as $run) {
            $identity = array_map(static fn (string $field): string => match ($value = $run[$field] ?? '') {
                true => $field,
                false => "no $field",
                default => (string) $value,
            }, Metric::IDENTITY[$this->benchmark]);
            $groups[implode(', ', array_filter($identity, static fn (string $part): bool => $part !== ''))][] = $run;
        }

        return $groups;
    }

    /** @param list<array<string, mixed>> $runs */
    private static function failed(array $runs): int
    {
        return count(array_filter($runs, static fn (array $run): bool => isset($run['failed'])));
    }

    /**
     * Seconds of the bus are seconds of a number of commands.
     *
     * @param list<array<string, mixed>> $old
     * @param list<array<string, mixed>> $new
     */
    private static function requireSameSize(string $benchmark, array $old, array $new): void
    {
        if (str_starts_with($benchmark, 'bus')) {
            $commands = static fn (array $runs): int => max([0, ...array_column($runs, 'rows')]);
            [$before, $after] = [$commands($old), $commands($new)];
            $before === 0 || $after === 0 || $before === $after
                || throw new BenchmarkException("$benchmark was run with " . number_format($before) . ' commands, and now with ' . number_format($after));
        }
    }

    /** The time of a disk flush differs from run to run; everything before it must not. */
    private static function requireSameMachine(string $old, string $new): void
    {
        $hardware = static fn (string $machine): string => (string) preg_replace('/, fdatasync .*$/', '', $machine);
        $hardware($old) === $hardware($new) || throw new BenchmarkException("the results are of different machines: $old; $new");
    }
}
