<?php

declare(strict_types=1);

namespace Weft\Tests\Bench\Http;

use PHPUnit\Framework\TestCase;
use Weft\Bench\BenchmarkException;
use Weft\Bench\Http\Contender;
use Weft\Bench\TimedOut;
use Weft\Tests\Timing;

require_once __DIR__ . '/../../../bench/autoload.php';

/** A contender that dies is started again, and what it printed before stays. */
final class ContenderTest extends TestCase
{
    private const SERVER = '$s = stream_socket_server("tcp://127.0.0.1:" . getenv("PORT")); echo "start $argv[1]\n"; sleep(60);';

    private string $logs;
    private ?Contender $contender = null;

    protected function setUp(): void
    {
        $this->logs = sys_get_temp_dir() . '/weft-contender-' . bin2hex(random_bytes(4));
        mkdir($this->logs);
    }

    protected function tearDown(): void
    {
        $this->contender?->stop();
        exec('rm -rf ' . escapeshellarg($this->logs));
    }

    public function testEveryStartHasALogOfItsOwn(): void
    {
        $this->contender = $this->contender(['{port}']);
        $first = $this->contender->server([], [], $this->logs);
        self::assertSame($first, $this->contender->server([], [], $this->logs), 'it runs already');
        $before = $this->contender->log();
        posix_kill($first->pid, SIGKILL);
        Timing::until(static fn (): bool => !$first->isRunning(), 'it ends');

        $this->contender->server([], [], $this->logs);

        self::assertSame(["{$this->logs}/node-1.log", "{$this->logs}/node-2.log"], [$before, $this->contender->log()]);
        self::assertStringStartsWith('start ', (string) file_get_contents($before));
    }

    public function testOneThatCouldNotBeBuiltIsNotStarted(): void
    {
        $this->contender = $this->contender(['{port}']);
        $this->contender->unavailable = 'npm ci exited with code 1: it needs npm';

        try {
            $this->contender->server([], [], $this->logs);
            self::fail('it was started');
        } catch (BenchmarkException $failure) {
            self::assertSame('npm ci exited with code 1: it needs npm', $failure->getMessage());
        }
        self::assertSame([], glob("{$this->logs}/*"));
    }

    public function testOneThatHangsIsStartedAnewOnce(): void
    {
        $this->contender = $this->contender(['{port}']);
        $first = $this->contender->server([], [], $this->logs);

        $this->contender->hung(new TimedOut('did not answer'));
        self::assertFalse(posix_kill($first->pid, 0), 'it is left behind');
        self::assertNotSame($first, $this->contender->server([], [], $this->logs));
        $this->contender->hung(new TimedOut('did not answer'));

        $this->expectExceptionMessage('did not answer; it was not started again');
        $this->contender->server([], [], $this->logs);
    }

    /** @param list<string> $arguments */
    private function contender(array $arguments): Contender
    {
        return new Contender('node', [PHP_BINARY, '-n', '-r', self::SERVER, '--', ...$arguments], false, true, true, []);
    }
}
