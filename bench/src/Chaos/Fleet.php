<?php

declare(strict_types=1);

namespace Weft\Bench\Chaos;

use Weft\Bench\BenchmarkException;

use function Weft\delay;

/** The processes that consume. One that is gone is replaced. */
final class Fleet
{
    private const SIGKILL = 9;
    /** Far more than the messages that crash their worker can cause. */
    private const MOST_CRASHES = 100;

    /** @var array<int, array{resource, int}> process and pid by place */
    private array $workers = [];

    private int $started = 0;
    private bool $stopping = false;

    /** How many have gone without being told to. */
    public int $crashed = 0;

    /** @param list<string> $arguments of worker.php, but for the file */
    public function __construct(
        private readonly int $size,
        private readonly array $arguments,
        private readonly string $directory,
        private readonly History $history,
    ) {
    }

    /**
     * Keeps the fleet at its size until {@see stop()}.
     *
     * @throws BenchmarkException when it cannot be kept
     */
    public function run(): void
    {
        while (!$this->stopping) {
            for ($place = 0; $place < $this->size; ++$place) {
                $this->look($place);
            }
            delay(0.05);
        }
    }

    public function kill(int $place): void
    {
        [$process, $pid] = $this->workers[$place] ?? [null, 0];
        if ($process !== null && proc_get_status($process)['running']) {
            posix_kill($pid, self::SIGKILL);
            --$this->crashed;
        }
    }

    /** Ends every worker in order, and by force those that take longer than the deadline. */
    public function stop(float $deadline): void
    {
        $this->stopping = true;
        foreach ($this->workers as [, $pid]) {
            posix_kill($pid, SIGTERM);
        }
        $until = microtime(true) + $deadline;
        foreach ($this->workers as [$process, $pid]) {
            while (proc_get_status($process)['running'] && microtime(true) < $until) {
                delay(0.02);
            }
            if (proc_get_status($process)['running']) {
                $this->history->note("worker {$pid} did not stop in time and is killed");
                posix_kill($pid, self::SIGKILL);
            }
            proc_close($process);
        }
        $this->workers = [];
    }

    /** @return array<string, int> the progress that workers have recorded, summed over all workers */
    public function progress(): array
    {
        $sums = [];
        foreach (glob("{$this->directory}/worker-*.json") ?: [] as $file) {
            foreach (json_decode((string) file_get_contents($file), true) ?? [] as $name => $count) {
                $sums[$name] = ($sums[$name] ?? 0) + $count;
            }
        }

        return $sums;
    }

    private function look(int $place): void
    {
        if (isset($this->workers[$place])) {
            if (proc_get_status($this->workers[$place][0])['running']) {
                return;
            }
            proc_close($this->workers[$place][0]);
            if (++$this->crashed > self::MOST_CRASHES) {
                throw new BenchmarkException('workers went away ' . self::MOST_CRASHES . " times without being told to, see {$this->directory}/workers.log");
            }
        }
        $number = ++$this->started;
        $log = "{$this->directory}/workers.log";
        $command = [PHP_BINARY, ...self::extension(), __DIR__ . '/../../chaos/worker.php', ...$this->arguments, "{$this->directory}/worker-{$number}.json"];
        $process = proc_open($command, [['file', '/dev/null', 'r'], ['file', $log, 'a'], ['file', $log, 'a']], $pipes);
        \assert(is_resource($process));
        $this->workers[$place] = [$process, proc_get_status($process)['pid']];
    }

    /** @return list<string> the option this process got its extension by */
    private static function extension(): array
    {
        $file = getenv('WEFT_EXTENSION');
        if ($file !== false && $file !== '') {
            return ['-d', "extension={$file}"];
        }
        foreach (explode("\0", (string) @file_get_contents('/proc/self/cmdline')) as $argument) {
            if (str_starts_with($argument, 'extension=')) {
                return ['-d', $argument];
            }
        }

        return [];
    }
}
