<?php

declare(strict_types=1);

namespace Weft\Tests\Harness;

/** `scripts/test`. */
final class Command
{
    private const USAGE = <<<'TEXT'
        usage: scripts/test [rust] [protobuf] [php]     all when none is named
               scripts/test quick                       the suite "quick" of phpunit.xml.dist, without servers
               scripts/test PATH...                     test files and directories of PHP

        WEFT_EXTENSION names the extension (target/debug/libweft.so), WEFT_TEST_LANES how many jobs run at a time.

        TEXT;

    private const SUITES = ['rust', 'protobuf', 'php', 'quick'];

    private readonly string $var;
    private readonly string $reports;
    private readonly string $scratch;
    /** @var list<Lane> */
    private array $lanes = [];

    public function __construct(private readonly string $root)
    {
        $this->var = \getenv('WEFT_VAR') ?: "$root/var";
        $this->reports = "{$this->var}/test";
        // Short, as the paths of sockets are that tests make below it.
        $this->scratch = \sys_get_temp_dir() . '/weft-test-' . \bin2hex(\random_bytes(3));
    }

    /**
     * @param list<string> $arguments
     *
     * @return int the exit code
     */
    public function run(array $arguments): int
    {
        if (\array_intersect($arguments, ['-h', '--help']) !== []) {
            echo self::USAGE;

            return 0;
        }
        foreach (\array_diff($arguments, self::SUITES) as $path) {
            \file_exists($path) || throw new \RuntimeException("there is no $path");
        }
        $this->prepare();
        try {
            return $this->runLocked($arguments);
        } finally {
            $this->tidy();
        }
    }

    private function prepare(): void
    {
        \getenv('WEFT_EXTENSION') || \putenv('WEFT_EXTENSION=' . (\getenv('CARGO_TARGET_DIR') ?: "{$this->root}/target") . '/debug/libweft.so');
        @\mkdir($this->var, recursive: true);
        // With `e` the servers do not inherit it: a run that was killed holds the lock no longer, although its servers go on.
        $lock = \fopen("{$this->var}/test.lock", 'ce');
        $lock !== false && \flock($lock, \LOCK_EX | \LOCK_NB) || throw new \RuntimeException("another scripts/test runs on {$this->var}");
        // Held until this process ends.
        $GLOBALS['weft_test_lock'] = $lock;
        Lane::remove($this->reports);
        \mkdir($this->reports);
        \mkdir($this->scratch, 0o755);
    }

    /** @param list<string> $arguments */
    private function runLocked(array $arguments): int
    {
        $times = new Times("{$this->var}/test-times.json");
        $started = \hrtime(true);
        $this->lanes = $this->lanes($arguments !== ['quick']);
        $runner = new Runner($this->lanes, static function (string $line): void {
            echo "$line\n";
        });
        $this->onSignal($runner->interrupt(...));
        $result = $runner->run($this->jobs(new Catalogue($this->root, $times), $arguments));
        $runner->isInterrupted() || $times->save($result->times);
        if ($runner->isInterrupted()) {
            echo "interrupted: the servers are stopped\n";

            return 130;
        }
        $this->printResult($result, (\hrtime(true) - $started) / 1e9);

        return $result->failed === 0 ? 0 : 1;
    }

    /**
     * @param list<string> $arguments
     *
     * @return list<Job>
     */
    private function jobs(Catalogue $catalogue, array $arguments): array
    {
        $jobs = $paths = [];
        foreach ($arguments ?: ['rust', 'protobuf', 'php'] as $argument) {
            match ($argument) {
                'rust' => \array_push($jobs, ...$catalogue->rust()),
                'protobuf' => \array_push($jobs, ...$catalogue->protobuf()),
                'php' => \array_push($jobs, ...$catalogue->php()),
                'quick' => \array_push($jobs, ...$catalogue->quick()),
                default => $paths[] = $argument,
            };
        }
        $paths === [] || \array_push($jobs, ...$catalogue->paths($paths));

        return $jobs;
    }

    /** @return list<Lane> */
    private function lanes(bool $withServers): array
    {
        $count = (int) \getenv('WEFT_TEST_LANES') ?: \max(3, \min(6, 2 * (int) \shell_exec('nproc')));
        $lanes = [];
        foreach (\range(1, $count) as $number) {
            $lanes[] = new Lane($this->root, $number, $this->reports, $this->scratch, $withServers ? "{$this->var}/lanes/$number" : null);
        }

        return $lanes;
    }

    private function onSignal(\Closure $interrupt): void
    {
        if (\function_exists('pcntl_signal')) {
            \pcntl_async_signals(true);
            foreach ([\SIGINT, \SIGTERM, \SIGHUP] as $signal) {
                \pcntl_signal($signal, $interrupt);
            }
        }
    }

    private function printResult(Result $result, float $seconds): void
    {
        \printf("\n=== all tests, in %d:%02d\n", \intdiv((int) $seconds, 60), (int) $seconds % 60);
        $tests = [];
        foreach ($result->skips as [$test, $reason]) {
            $tests[$reason][] = $test;
        }
        foreach ($tests as $reason => $skipped) {
            echo 'skipped ', \count($skipped), ": $reason\n    ", \implode("\n    ", $skipped), "\n";
        }
        foreach ($result->failures as $name => $message) {
            echo "\nfailed: $name\n", $message === '' ? '' : \preg_replace('/^/m', '    ', \mb_substr($message, 0, 4000)) . "\n";
        }
        echo $result->failed > 0 ? "\nThe whole output of each job is in {$this->reports}.\n" : '';
        echo $result->summary(), "\n";
    }

    private function tidy(): void
    {
        foreach ($this->lanes as $lane) {
            $lane->interrupt();
        }
        $stopping = \array_filter(\array_map(static fn (Lane $lane): ?Process => $lane->stop(), $this->lanes));
        // Those of tests that were ended before they could stop them.
        foreach (\glob("{$this->var}/chaos*/chaos/services") ?: [] as $number => $services) {
            $stopping[] = new Process(["{$this->root}/scripts/services", 'down'], "{$this->reports}/services-down-chaos-$number", ['WEFT_VAR' => \dirname($services)]);
        }
        foreach ($stopping as $process) {
            while ($process->code() === null) {
                \usleep(20_000);
            }
        }
        Lane::remove($this->scratch);
    }
}
