<?php

declare(strict_types=1);

namespace Weft\Tests\Bench;

use PHPUnit\Framework\TestCase;
use Weft\Bench\BenchmarkException;
use Weft\Bench\Port;
use Weft\Bench\Server;
use Weft\Tests\Timing;

require_once __DIR__ . '/../../bench/autoload.php';

final class ServerTest extends TestCase
{
    private const LISTEN = '$s = stream_socket_server("tcp://127.0.0.1:" . $argv[1]);';

    private string $log;
    private ?Server $server = null;

    protected function setUp(): void
    {
        $this->log = tempnam(sys_get_temp_dir(), 'weft-bench');
    }

    protected function tearDown(): void
    {
        $this->server?->stop();
        unlink($this->log);
    }

    public function testItIsUpWhenItAcceptsAndGoneWhenItIsStopped(): void
    {
        $port = Port::free();
        $this->server = $this->start(self::LISTEN . 'sleep(60);', $port);

        self::assertTrue(Port::accepts($port));
        $this->server->stop();

        self::assertFalse(Port::accepts($port));
        self::assertSame([], $this->server->tree->pids());
    }

    public function testProcessorTimeAndMemoryOfItsChildrenCount(): void
    {
        $child = '$x = str_repeat("x", 64 << 20); while (getrusage()["ru_utime.tv_usec"] < 3e5); file_put_contents($argv[1], "done"); sleep(60);';
        $done = "{$this->log}.done";
        $code = 'proc_open([PHP_BINARY, "-r", $argv[2], "--", $argv[3]], [], $p);' . self::LISTEN . 'sleep(60);';
        $this->server = $this->start($code, Port::free(), $child, $done);
        $this->awaitFile($done);

        self::assertCount(2, $this->server->tree->pids());
        self::assertGreaterThan(0.25, $this->server->tree->cpuSeconds());
        self::assertGreaterThan(64, $this->server->tree->residentMib());
        self::assertLessThan(200, $this->server->tree->residentMib());
    }

    public function testItIsIdleOnceItHasDoneWhatIsLeft(): void
    {
        $code = '$c = stream_socket_accept($s); while (getrusage()["ru_utime.tv_usec"] < 5e5); file_put_contents($argv[2], "done"); sleep(60);';
        $done = "{$this->log}.done";
        $port = Port::free();
        // Finding out that it is up is the connection that starts its work.
        $this->server = $this->start(self::LISTEN . $code, $port, $done);

        self::assertTrue($this->server->awaitIdle(60.0));

        self::assertFileExists($done);
        unlink($done);
    }

    public function testAServerThatNeverRestsIsNotWaitedForForever(): void
    {
        $this->server = $this->start(self::LISTEN . 'while (true);', Port::free());

        self::assertFalse($this->server->awaitIdle(0.3));
    }

    public function testAChildThatLeftTheSessionCounts(): void
    {
        $code = '$c = proc_open(["setsid", "cat"], [["pipe", "r"]], $p);' . self::LISTEN . 'sleep(60);';
        $this->server = $this->start($code, Port::free());

        self::assertCount(2, $this->server->tree->pids());
    }

    public function testTheTimeOfAChildThatHasEndedStillCounts(): void
    {
        $child = 'while (getrusage()["ru_utime.tv_usec"] < 3e5);';
        $code = '$c = proc_open([PHP_BINARY, "-r", $argv[2]], [], $p); proc_close($c);' . self::LISTEN . 'sleep(60);';
        $this->server = $this->start($code, Port::free(), $child);

        self::assertCount(1, $this->server->tree->pids());
        self::assertGreaterThan(0.25, $this->server->tree->cpuSeconds());
    }

    public function testOneThatIgnoresTheSignalIsKilledWithItsChildren(): void
    {
        $code = 'pcntl_async_signals(true); pcntl_signal(SIGTERM, fn () => proc_open(["sleep", "60"], [], $p));'
            . self::LISTEN . 'while (true) { usleep(1000); }';
        $this->server = $this->start($code, Port::free());

        $this->server->stop(graceSeconds: 0.5);

        self::assertSame([], $this->server->tree->pids());
    }

    public function testOneThatEndsAtOnceIsReportedWithTheEndOfItsLog(): void
    {
        $this->expectException(BenchmarkException::class);
        $this->expectExceptionMessage('no licence');

        $this->start('fwrite(STDERR, "no licence\n"); exit(3);', Port::free());
    }

    private function start(string $code, int $port, string ...$arguments): Server
    {
        return Server::start([PHP_BINARY, '-n', '-r', $code, '--', (string) $port, ...$arguments], [], $this->log, $port, timeout: Timing::DEADLINE);
    }

    private function awaitFile(string $file): void
    {
        Timing::until(static fn (): bool => is_file($file), "$file appears");
        unlink($file);
    }
}
