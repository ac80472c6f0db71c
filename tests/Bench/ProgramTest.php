<?php

declare(strict_types=1);

namespace Weft\Tests\Bench;

use PHPUnit\Framework\TestCase;
use Weft\Bench\BenchmarkException;
use Weft\Bench\Interrupted;
use Weft\Bench\Program;
use Weft\Bench\Usage;
use Weft\Tests\Timing;

require_once __DIR__ . '/../../bench/autoload.php';

final class ProgramTest extends TestCase
{
    private string $log;

    protected function setUp(): void
    {
        $this->log = tempnam(sys_get_temp_dir(), 'weft-bench');
    }

    protected function tearDown(): void
    {
        unlink($this->log);
    }

    public function testOneThatIsInterruptedIsEnded(): void
    {
        $pid = 0;
        $tick = function () use (&$pid): void {
            $pid = (int) file_get_contents($this->log);
            $pid === 0 || throw new Interrupted('interrupted', SIGINT);
        };
        try {
            Program::run(['sh', '-c', 'echo $$ >&2; exec sleep 60'], [], $this->log, Timing::DEADLINE, $tick);
            self::fail('it went on');
        } catch (Interrupted $signal) {
            self::assertSame(SIGINT, $signal->getCode());
        }

        self::assertGreaterThan(1, $pid);
        self::assertFalse(posix_kill($pid, 0), 'the program is left behind');
    }

    public function testOneIsEndedThatIsInterruptedWhileItStarts(): void
    {
        $code = 'require $argv[1]; Weft\Bench\Script::run("program", "", static function (array $arguments): int {'
            . 'Weft\Bench\Program::run(["sh", "-c", "echo \$\$ >&2; kill -INT \$PPID; exec sleep 600"], [], $arguments[1], 60.0, static fn () => null); return 0; });';
        for ($round = 0; $round < 10; $round++) {
            $command = [PHP_BINARY, '-r', $code, '--', dirname(__DIR__, 2) . '/bench/autoload.php', $this->log];
            exec(implode(' ', array_map(escapeshellarg(...), $command)) . ' 2>&1', $output, $exit);
            $pid = (int) file_get_contents($this->log);

            self::assertSame(128 + SIGINT, $exit, implode("\n", $output));
            self::assertGreaterThan(1, $pid);
            self::assertFalse(posix_kill($pid, 0), 'the program is left behind');
        }
    }

    public function testItReportsOutputAndCpuTimeAndPeakMemoryOfTheProgram(): void
    {
        $code = '$block = str_repeat("x", 64 << 20);'
            . 'while (getrusage()["ru_utime.tv_usec"] < 2e5);'
            . 'echo "done ", getenv("ANSWER");';

        $usage = $this->execute($code, ['ANSWER' => '42']);

        self::assertSame('done 42', $usage->output);
        self::assertGreaterThan(0.1, $usage->cpuSeconds);
        self::assertGreaterThanOrEqual($usage->cpuSeconds - 0.05, $usage->seconds);
        self::assertGreaterThan(64, $usage->peakMemory);
    }

    public function testTheMemoryOfTheRunnerIsNotTakenForTheProgramsOwn(): void
    {
        $block = str_repeat('x', 128 << 20);

        $usage = $this->execute('usleep(100_000);');

        self::assertLessThan(100, $usage->peakMemory);
        self::assertSame(128 << 20, strlen($block));
    }

    public function testAnExitCodeIsAFailureThatNamesTheLog(): void
    {
        $this->expectException(BenchmarkException::class);
        $this->expectExceptionMessage("exited with code 3, log: {$this->log}");

        $this->execute('fwrite(STDERR, "no table"); exit(3);');
    }

    public function testTheErrorStreamGoesToTheLog(): void
    {
        $this->execute('fwrite(STDERR, "a notice");');

        self::assertStringEqualsFile($this->log, 'a notice');
    }

    public function testAProgramThatTakesTooLongIsEnded(): void
    {
        $started = microtime(true);
        // On a busy machine a second may pass before it runs.
        for ($timeout = 1; !is_file($this->log) || filesize($this->log) === 0; $timeout *= 3) {
            try {
                $this->execute('file_put_contents("php://stderr", getmypid()); sleep(600);', timeout: (float) $timeout);
                self::fail('it was not ended');
            } catch (BenchmarkException $failure) {
                self::assertStringContainsString("did not end within $timeout s", $failure->getMessage());
            }
            clearstatcache();
        }
        self::assertLessThan(300, microtime(true) - $started, 'half of what it sleeps');
        self::assertDirectoryDoesNotExist('/proc/' . file_get_contents($this->log));
    }

    private function execute(string $code, array $environment = [], float $timeout = 120.0): Usage
    {
        $command = [PHP_BINARY, '-n', '-d', 'memory_limit=-1', '-r', $code];

        return Program::run($command, $environment, $this->log, $timeout, static fn () => null);
    }
}
