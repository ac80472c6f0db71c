<?php

declare(strict_types=1);

namespace Weft\Bench\Guard;

use Weft\Bench\BenchmarkException;
use Weft\Bench\DiskFlush;
use Weft\Bench\Http\People;
use Weft\Bench\Machine;
use Weft\Bench\Port;
use Weft\Bench\ResultsFile;
use Weft\Bench\Server;
use Weft\Bench\Spread;
use Weft\Bench\Versions;

/**
 * Counts instructions, allocations and system calls of a request, a query and a message.
 *
 * None of them depends on how busy the machine is. They depend on PHP, the compiler and the processor, so limits hold for one kind of machine.
 */
final class Guard
{
    /** Requests before anything is counted: caches are filled, connections open, tables grown. */
    private const WARM_UP = 300;
    /** Rounds of requests that are counted. */
    private const ROUNDS = 1_000;
    private const MESSAGES = [500, 2_500];
    /** Path and connections by load. */
    private const LOADS = [
        'hello, 1 connection' => ['/hello', 1],
        'hello, 8 connections' => ['/hello', 8],
        'json, 1 connection' => ['/json', 1],
        'query, 1 connection' => ['/query?id=42', 1],
        'static, 1 connection' => ['/static/' . self::FILE, 1],
    ];
    /** A file of the size that bench/http serves. */
    private const FILE = 'file.bin';
    private const FILE_BYTES = 16 << 10;

    private readonly string $out;

    /** @param string $root the repository */
    public function __construct(private readonly string $root, private readonly Options $options)
    {
        $this->out = "$root/bench/out/guard";
    }

    /** @return int the exit code */
    public function run(): int
    {
        foreach (['valgrind', 'callgrind_control', 'strace'] as $program) {
            exec("command -v $program", $_, $code);
            $code === 0 || throw new BenchmarkException("$program is missing: run `scripts/setup memory`");
        }
        @mkdir($this->out, recursive: true);
        file_put_contents("{$this->out}/" . self::FILE, str_repeat('x', self::FILE_BYTES));
        $counts = $this->requests();
        $counts['message'] = $this->messages();
        if ($this->options->write) {
            $versions = ['weft' => Versions::weft($this->root), 'php' => PHP_VERSION, 'valgrind' => Versions::of('valgrind --version')];
            ResultsFile::save($this->options->limits, ['machine' => Machine::describe(Spread::of([DiskFlush::microseconds($this->out)])), 'versions' => $versions, 'runs' => $counts]);
        }
        $limits = new Limits($counts, is_file($this->options->limits) ? ResultsFile::load($this->options->limits)['runs'] : []);
        echo $limits->table()->text();
        foreach ($limits->exceeded() as $exceeded) {
            echo "EXCEEDED $exceeded\n";
        }

        return $limits->exceeded() === [] ? 0 : 1;
    }

    /** @return array<string, array<string, float>> */
    private function requests(): array
    {
        $counts = [];
        $this->withServer('callgrind', fn (array $command): array => Callgrind::command("{$this->out}/server", $command), function (int $pid, int $port) use (&$counts): void {
            foreach (self::LOADS as $load => [$path, $connections]) {
                $client = new Client($pid, $port, $path, $connections);
                $client->send(intdiv(self::WARM_UP, $connections));
                self::control('--zero', $pid);
                $client->send(intdiv(self::ROUNDS, $connections));
                array_map(unlink(...), glob("{$this->out}/server*") ?: []);
                self::control('--dump=guard', $pid);
                $counts[$load] = self::each(Callgrind::read((glob("{$this->out}/server*") ?: [''])[0]), intdiv(self::ROUNDS, $connections) * $connections);
            }
        });
        $this->withServer('strace', static fn (array $command): array => $command, function (int $pid, int $port) use (&$counts): void {
            foreach (self::LOADS as $load => [$path, $connections]) {
                $client = new Client($pid, $port, $path, $connections);
                $client->send(self::WARM_UP);
                $calls = Strace::during($pid, "{$this->out}/strace", static fn () => $client->send(self::ROUNDS));
                $counts[$load]['system calls'] = round($calls / self::ROUNDS / $connections, 3);
            }
        });

        return $counts;
    }

    /** @return array<string, float> the difference of a long run and a short one */
    private function messages(): array
    {
        $counts = [];
        foreach (self::MESSAGES as $run => $messages) {
            $file = "{$this->out}/messages";
            $command = [...$this->php(), "{$this->root}/bench/guard/messages.php", (string) $messages];
            self::execute(Callgrind::command($file, $command));
            self::execute(['strace', '-f', '-c', '-o', "$file.strace", ...$command]);
            $counts[$run] = Callgrind::read($file) + ['system calls' => Strace::total("$file.strace")];
        }
        $added = array_map(static fn (int $long, int $short): int => $long - $short, $counts[1], $counts[0]);

        return self::each(array_combine(array_keys($counts[0]), $added), self::MESSAGES[1] - self::MESSAGES[0]);
    }

    /**
     * @param \Closure(list<string>): list<string> $wrap the command
     * @param \Closure(int, int): void $work gets the process and the port
     */
    private function withServer(string $name, \Closure $wrap, \Closure $work): void
    {
        $database = new People(getenv('DATABASE_URL') ?: throw new BenchmarkException('DATABASE_URL is not set: run `make services` and `. var/services/env`'));
        $port = Port::free();
        $environment = ['PORT' => (string) $port, 'DATABASE_URL' => $database->url(), 'STATIC_DIRECTORY' => $this->out];
        $server = Server::start($wrap([...$this->php(), "{$this->root}/bench/http/weft/app.php"]), $environment, "{$this->out}/$name.log", $port, 60.0);
        try {
            $work($server->pid, $port);
        } finally {
            $server->stop();
        }
    }

    /** @return list<string> */
    private function php(): array
    {
        return [PHP_BINARY, '-d', 'opcache.enable_cli=1', '-d', 'opcache.validate_timestamps=0', '-d', "extension={$this->options->extension}"];
    }

    /**
     * @param array<string, int> $counts
     *
     * @return array<string, float>
     */
    private static function each(array $counts, int $divisor): array
    {
        return array_map(static fn (int $count): float => round($count / $divisor, $count / $divisor < 100 ? 3 : 0), $counts);
    }

    private static function control(string $action, int $pid): void
    {
        self::execute(['callgrind_control', $action, (string) $pid]);
    }

    /** @param list<string> $command */
    private static function execute(array $command): void
    {
        exec(implode(' ', array_map(escapeshellarg(...), $command)) . ' 2>&1', $output, $code);
        $code === 0 || throw new BenchmarkException(implode(' ', $command) . " exited with code $code: " . implode("\n", $output));
    }
}
