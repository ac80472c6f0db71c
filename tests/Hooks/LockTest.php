<?php

declare(strict_types=1);

namespace Weft\Tests\Hooks;

use PHPUnit\Framework\TestCase;
use Weft\Runtime\Realm;
use Weft\Runtime\TimeoutException;

use function Weft\all;
use function Weft\async;
use function Weft\delay;
use function Weft\run;
use function Weft\timeout;

/** `flock()` in tasks. If it blocked the process, the holder could not release the lock, and each of these tests would hang. */
final class LockTest extends TestCase
{
    private string $file;

    protected function setUp(): void
    {
        $this->file = (string) \tempnam(\sys_get_temp_dir(), 'weft-lock-');
    }

    protected function tearDown(): void
    {
        \unlink($this->file);
    }

    public function testATaskThatHoldsALockAcrossAWaitReleasesIt(): void
    {
        $order = [];
        run(function () use (&$order): void {
            $tasks = [];
            foreach (\range(1, 5) as $n) {
                $tasks[] = function () use ($n, &$order): void {
                    $lock = \fopen($this->file, 'c');
                    self::assertTrue(\flock($lock, \LOCK_EX));
                    $order[] = "locked $n";
                    delay(0.002);
                    $order[] = "unlocked $n";
                    \flock($lock, \LOCK_UN);
                };
            }
            all($tasks);
        });

        self::assertCount(10, $order);
        for ($i = 0; $i < 10; $i += 2) {
            self::assertSame(\str_replace('locked', 'unlocked', $order[$i]), $order[$i + 1], 'one task at a time has the lock');
        }
    }

    public function testALockOfAnotherProcessIsWaitedFor(): void
    {
        $holder = \proc_open(['flock', $this->file, 'sh', '-c', 'echo held; read _'], [['pipe', 'r'], ['pipe', 'w']], $pipes);
        self::assertSame("held\n", \fgets($pipes[1]));

        $order = run(function () use ($pipes): array {
            $order = [];
            $waiting = async(function () use (&$order): void {
                \flock(\fopen($this->file, 'c'), \LOCK_EX);
                $order[] = 'locked';
            });
            delay(0.02);
            $order[] = 'released';
            \fwrite($pipes[0], "\n");
            $waiting->await();

            return $order;
        });

        \proc_close($holder);
        self::assertSame(['released', 'locked'], $order);
    }

    public function testAWaitForALockIsCancelled(): void
    {
        $this->expectException(TimeoutException::class);

        run(function (): void {
            $held = \fopen($this->file, 'c');
            \flock($held, \LOCK_EX);
            timeout(0.05, fn(): bool => \flock(\fopen($this->file, 'c'), \LOCK_EX));
        });
    }

    public function testATryDoesNotWait(): void
    {
        $tried = run(function (): array {
            $held = \fopen($this->file, 'c');
            \flock($held, \LOCK_SH);

            return [\flock(\fopen($this->file, 'c'), \LOCK_EX | \LOCK_NB, $wouldBlock), $wouldBlock, \flock(\fopen($this->file, 'c'), \LOCK_SH)];
        });

        self::assertSame([false, 1, true], $tried);
    }

    public function testTwoRequestsOfOneSessionTakeTurns(): void
    {
        $directory = \sys_get_temp_dir() . '/weft-lock-sessions-' . \bin2hex(\random_bytes(4));
        \mkdir($directory);
        try {
            $counts = run(static fn(): array => all(\array_map(static fn(): \Closure => static fn(): int => (new Realm())->run(static function () use ($directory): int {
                \ini_set('session.use_cookies', '0');
                \ini_set('session.cache_limiter', '');
                \ini_set('session.use_strict_mode', '0');
                \session_save_path($directory);
                \session_id('one');
                \session_start();
                $count = $_SESSION['count'] = ($_SESSION['count'] ?? 0) + 1;
                delay(0.002);
                \session_write_close();

                return $count;
            }), \range(1, 5))));
        } finally {
            \exec('rm -rf ' . \escapeshellarg($directory));
        }

        \sort($counts);
        self::assertSame([1, 2, 3, 4, 5], $counts);
    }
}
