<?php

declare(strict_types=1);

namespace Weft\Tests\Lock;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Lock\Lock;
use Weft\Lock\Locks;
use Weft\Tests\Sql\Support\Databases;

/** Owners in processes of their own, killed and stopped while they have the lock. */
final class ProcessesTest extends TestCase
{
    use Databases;

    private const DEADLINE = 60.0;
    private const PROCESSES = 4;
    private const KILLS = 4;

    /** @var list<resource> */
    private array $processes = [];

    private string $log;

    protected function setUp(): void
    {
        $this->log = \sys_get_temp_dir() . '/weft-locks-' . \bin2hex(\random_bytes(6));
    }

    protected function tearDown(): void
    {
        foreach ($this->processes as $process) {
            \proc_terminate($process, 9);
            \proc_close($process);
        }
        foreach ([$this->log, "{$this->log}.judge"] as $file) {
            \is_file($file) && \unlink($file);
        }
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testNoTwoProcessesHaveALockAtTheSameTimeHoweverManyOwnersAreKilled(string $kind): void
    {
        Locks::database($this->database($kind))->synchronized('made before', static fn(): bool => true);
        $deadline = \microtime(true) + self::DEADLINE;
        $kills = 0;
        while ($kills < self::KILLS) {
            self::assertLessThan($deadline, \microtime(true), "after {$kills} kills: " . @\file_get_contents($this->log));
            while (\count($this->processes) < self::PROCESSES) {
                $this->start('owner.php', $this->log, '1.5', '100000');
            }
            $before = \count($this->lines());
            while (\count($this->lines()) < $before + 20 && \microtime(true) < $deadline) {
                \usleep(5_000);
            }
            $victim = \array_rand($this->processes);
            \proc_terminate($this->processes[$victim], 9);
            \proc_close($this->processes[$victim]);
            unset($this->processes[$victim]);
            $kills++;
        }
        $lines = $this->lines();
        $fences = \array_map(static fn(string $line): int => (int) \substr($line, 6), \array_filter($lines, static fn(string $line): bool => $line !== 'lost'));
        $sorted = $fences;
        \sort($sorted);

        self::assertSame([], \array_values(\preg_grep('/TWO/', $lines) ?: []));
        self::assertSame($sorted, $fences, 'each owner has a greater number than those before');
        self::assertSame(\count($fences), \count(\array_unique($fences)));
        self::assertGreaterThanOrEqual(20 * self::KILLS, \count($fences));
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testAnOwnerThatStandsStillLosesItsLockAndNoticesWhenItGoesOn(string $kind): void
    {
        $database = $this->database($kind);
        $process = $this->start('sleeper.php', '3.0');
        [, $out] = $process;
        self::assertSame("owner 1\n", \fgets($out));
        \usleep(3_500_000);
        self::assertNull((new \Weft\Lock\SqlStore($database))->acquire('judged', 'me', 1.0), 'it is renewed');
        $pid = \proc_get_status($process[0])['pid'];
        \posix_kill($pid, \SIGSTOP);

        self::assertSame(2, Locks::database($database, 5.0)->synchronized('judged', static function (Lock $lock) use ($pid, $out): int {
            \posix_kill($pid, \SIGCONT);
            self::assertStringStartsWith('lost: The lock "judged" (fencing token 1) is lost', (string) \fgets($out));

            return $lock->fence;
        }, wait: self::DEADLINE));
    }

    /** @return array{resource, resource} process and its output */
    private function start(string $program, string ...$arguments): array
    {
        $kind = \array_key_last($this->made);
        $command = [\PHP_BINARY, '-d', 'extension=' . \getenv('WEFT_EXTENSION'), __DIR__ . "/Fixtures/{$program}", $this->databaseDsn((string) $kind), ...$arguments];
        $process = \proc_open($command, [1 => ['pipe', 'w'], 2 => \STDERR], $pipes);
        self::assertIsResource($process);
        $this->processes[] = $process;

        return [$process, $pipes[1]];
    }

    /** @return list<string> */
    private function lines(): array
    {
        return \is_file($this->log) ? \file($this->log, \FILE_IGNORE_NEW_LINES) : [];
    }
}
