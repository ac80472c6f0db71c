<?php

declare(strict_types=1);

namespace Weft\Bench\Suite;

use Weft\Bench\BenchmarkException;
use Weft\Bench\DiskFlush;
use Weft\Bench\Interrupted;
use Weft\Bench\Machine;
use Weft\Bench\Report\HtmlPage;
use Weft\Bench\Report\Sources;
use Weft\Bench\ResultsFile;
use Weft\Bench\Services;
use Weft\Bench\Spread;
use Weft\Bench\Table;
use Weft\Bench\Versions;

/** All benchmarks in turn. */
final class Suite
{
    private const MEANING = [0 => 'finished', 1 => 'finished with failures', 2 => 'could not run'];

    private readonly string $out;
    private readonly Services $services;

    /** @param string $root the repository */
    public function __construct(private readonly string $root, private readonly Options $options)
    {
        $this->out = "$root/bench/out";
        $this->services = new Services($root);
    }

    /** @return int exit code */
    public function run(): int
    {
        @mkdir("{$this->out}/logs", recursive: true);
        $runs = [];
        try {
            foreach ($this->options->entries as $position => $entry) {
                $left = array_slice($this->options->entries, $position + 1);
                $runs[] = $this->attempt($entry, $left);
                // A server that is no longer needed would only disturb the next benchmarks.
                $this->services->stop(array_merge(...array_map(static fn (Entry $entry): array => $entry->services(), $left)));
            }
        } catch (Interrupted $interrupted) {
            fwrite(STDERR, "completed results are in {$this->out}; bench/report/build --from={$this->out} makes the page of it\n");
            throw $interrupted;
        } finally {
            $this->services->stop();
            $runs === [] || $this->save($runs);
        }
        echo "\n", $this->table($runs)->text();
        $this->makePage();
        $failed = array_filter($runs, static fn (array $run): bool => $run['exit_code'] !== 0) !== [];
        $slower = $this->options->compare !== '' && $this->compare($this->options->compare) === 1;

        return $failed || $slower ? 1 : 0;
    }

    private function makePage(): void
    {
        try {
            (new HtmlPage($this->root))->write(Sources::directory($this->out), "{$this->out}/report.html");
            echo "\n{$this->out}/report.html shows all of it\n";
        } catch (BenchmarkException $failure) {
            echo "\nthere is no page: {$failure->getMessage()}\n";
        }
    }

    private function compare(string $old): int
    {
        passthru(implode(' ', array_map(escapeshellarg(...), ["{$this->root}/bench/compare", $old, $this->out])), $code);

        return $code;
    }

    /**
     * @param list<Entry> $left
     *
     * @return array<string, mixed>
     */
    private function attempt(Entry $entry, array $left): array
    {
        $log = "{$this->out}/logs/{$this->name($entry)}.log";
        $command = ["{$this->root}/bench/{$entry->value}/run", ...$this->arguments($entry)];
        $started = microtime(true);
        try {
            $this->services->start($entry->services());
            $environment = $entry->services() === [] ? [] : $this->services->variables();
            Interrupted::postpone();
            $code = $this->watch(new Child($command, $environment, $log), $entry, $left);
        } catch (BenchmarkException $failure) {
            file_put_contents($log, "{$failure->getMessage()}\n");
            fwrite(STDERR, "{$entry->value}: {$failure->getMessage()}\n");
            $code = 2;
        }

        return [
            'benchmark' => $this->name($entry),
            'command' => implode(' ', $command),
            'short' => $this->options->short,
            'seconds' => round(microtime(true) - $started, 1),
            'exit_code' => $code,
            'outcome' => self::MEANING[$code] ?? "ended with exit code $code",
            'log' => $log,
        ];
    }

    /** @param list<Entry> $left */
    private function watch(Child $child, Entry $entry, array $left): int
    {
        $names = array_map($this->name(...), $left);
        $console = new Console($this->name($entry), $names, $this->expectedSeconds($entry), array_sum(array_map($this->expectedSeconds(...), $left)));
        try {
            Interrupted::resume();
            $code = $child->await($console->say(...));
            $console->finish();

            return $code;
        } catch (Interrupted $interrupted) {
            fwrite(STDERR, "\nending {$entry->value} …\n");
            $child->end();
            throw $interrupted;
        }
    }

    /** @return list<string> */
    private function arguments(Entry $entry): array
    {
        return array_keys(array_filter([
            '--short' => $this->options->short,
            '--matrix' => $this->isMatrix($entry),
            "--extension={$this->options->extension}" => true,
        ]));
    }

    /** What it is called in results and logs. */
    private function name(Entry $entry): string
    {
        return $this->isMatrix($entry) ? "{$entry->value}-matrix" : $entry->value;
    }

    private function isMatrix(Entry $entry): bool
    {
        return $this->options->matrix && $entry === Entry::Bus;
    }

    /** Its duration of the last run in the same mode, or a typical one. */
    private function expectedSeconds(Entry $entry): float
    {
        $last = json_decode((string) @file_get_contents("{$this->out}/suite.json"), true)['runs'] ?? [];
        $same = array_filter($last, fn (array $run): bool => $run['short'] === $this->options->short && $run['exit_code'] < 2);

        return array_column($same, 'seconds', 'benchmark')[$this->name($entry)] ?? $entry->usualSeconds($this->options->short, $this->isMatrix($entry));
    }

    /**
     * Benchmarks that did not run keep their last duration.
     *
     * @param list<array<string, mixed>> $runs
     */
    private function save(array $runs): void
    {
        $last = json_decode((string) @file_get_contents("{$this->out}/suite.json"), true)['runs'] ?? [];
        $all = array_values(array_column($runs, null, 'benchmark') + array_column($last, null, 'benchmark'));
        $machine = Machine::describe(Spread::of([DiskFlush::microseconds($this->out)]));
        ResultsFile::save("{$this->out}/suite.json", ['machine' => $machine, 'versions' => ['weft' => Versions::weft($this->root)], 'runs' => $all]);
    }

    /** @param list<array<string, mixed>> $runs */
    private function table(array $runs): Table
    {
        return new Table(['benchmark', 'seconds', 'outcome', 'printed'], array_map(static fn (array $run): array => [
            $run['benchmark'],
            number_format($run['seconds']),
            $run['outcome'],
            $run['log'],
        ], $runs));
    }
}
