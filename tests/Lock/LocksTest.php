<?php

declare(strict_types=1);

namespace Weft\Tests\Lock;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Lock\Lock;
use Weft\Lock\LockLostException;
use Weft\Lock\Locks;
use Weft\Lock\LockStore;
use Weft\Lock\LockConflictException;
use Weft\Lock\MemoryStore;
use Weft\Runtime\CancelledException;
use Weft\Runtime\TimeoutException;
use Weft\Sql\ConnectionLostException;
use Weft\UsageError;

use function Weft\async;
use function Weft\delay;
use function Weft\detach;
use function Weft\run;
use function Weft\tasks;
use function Weft\timeout;

final class LocksTest extends TestCase
{
    public function testTasksOfOneProcessGetALockInTheOrderInWhichTheyAsk(): void
    {
        $order = new \ArrayObject();
        run(static function () use ($order): void {
            $locks = new Locks(new MemoryStore());
            foreach (\range(1, 5) as $i) {
                async(static fn() => $locks->synchronized('a', static function (Lock $lock) use ($i, $order): void {
                    $order[] = "{$i} begins";
                    delay(0.002);
                    $order[] = "{$i} ends";
                }));
            }
        });

        self::assertSame(['1 begins', '1 ends', '2 begins', '2 ends', '3 begins', '3 ends', '4 begins', '4 ends', '5 begins', '5 ends'], $order->getArrayCopy());
    }

    public function testSynchronizedPassesOnResultsAndExceptionsAndFreesTheLock(): void
    {
        $store = new MemoryStore();
        $locks = new Locks($store);

        self::assertSame('done', $locks->synchronized('a', static fn(): string => 'done'));
        try {
            $locks->synchronized('a', static fn() => throw new \DomainException('no'));
            self::fail('nothing was thrown');
        } catch (\DomainException $thrown) {
            self::assertSame('no', $thrown->getMessage());
        }
        self::assertSame(3, $store->acquire('a', 'next', 1.0));
    }

    public function testALockLivesAsLongAsItsSectionWhateverItsTime(): void
    {
        run(static function (): void {
            // A process that stands still for longer than the lock lives does lose it: then it is tried again.
            for ($attempt = 0, $longest = \INF; $attempt < 20 && $longest >= 0.1; $attempt++) {
                $store = new MemoryStore();
                $seen = [];
                $longest = 0.0;
                try {
                    (new Locks($store, seconds: 0.3))->synchronized('a', static function (Lock $lock) use ($store, &$seen, &$longest): void {
                        for ($i = 0; $i < 30; $i++) {
                            $before = \hrtime(true);
                            try {
                                delay(0.03);
                            } finally {
                                $longest = \max($longest, (\hrtime(true) - $before) / 1e9);
                            }
                            $seen[] = [$lock->isHeld(), $store->acquire('a', 'thief', 1.0)];
                        }
                    });
                } catch (LockLostException $lost) {
                    $longest >= 0.1 || throw $lost;
                }
            }
            self::assertSame(\array_fill(0, 30, [true, null]), $seen);
            self::assertCount(1, tasks(), 'nobody renews any more');
        });
    }

    /** @dataProvider waits */
    #[DataProvider('waits')]
    public function testATaskThatHoldsALockAndAsksForItIsToldItsName(?float $wait): void
    {
        $locks = new Locks(new MemoryStore());
        $this->expectException(UsageError::class);
        $this->expectExceptionMessage('The lock "x" is held by this task already; locks are not re-entrant');

        $locks->synchronized('x', static fn() => $locks->synchronized('x', static fn() => self::fail('entered'), $wait));
    }

    public static function waits(): iterable
    {
        yield 'without limit' => [null];
        yield 'not at all' => [0.0];
        yield 'a second' => [1.0];
    }

    public function testAFailedAttemptWithoutWaitingNamesTheLock(): void
    {
        $store = new MemoryStore();
        $store->acquire('invoices', 'another process', 600.0);
        $began = \microtime(true);
        foreach ([0.0, 0.1] as $wait) {
            try {
                (new Locks($store))->synchronized('invoices', static fn() => self::fail('entered'), wait: $wait);
                self::fail('nothing was thrown');
            } catch (LockConflictException $conflict) {
                self::assertSame('invoices', $conflict->name);
                self::assertStringContainsString('"invoices"', $conflict->getMessage());
            }
        }
        self::assertGreaterThanOrEqual(0.1, \microtime(true) - $began);
        self::assertLessThan(60.0, \microtime(true) - $began, 'not the ten minutes of the lock');
    }

    public function testATaskThatWaitsForAnotherOfItsProcessGivesUpInTime(): void
    {
        run(static function (): void {
            $locks = new Locks(new MemoryStore());
            $holder = async(static fn() => $locks->synchronized('a', static fn() => delay(60.0)));
            delay(0.01);
            try {
                $locks->synchronized('a', static fn() => self::fail('entered'), wait: 0.05);
                self::fail('nothing was thrown');
            } catch (LockConflictException $conflict) {
                self::assertStringContainsString('other tasks of this process', $conflict->getMessage());
            }
            self::assertFalse($holder->isDone());
            $holder->cancel();
        });
    }

    public function testALockOfAnOwnerThatIsGoneIsTakenWhenItsTimeIsOver(): void
    {
        $store = new MemoryStore();
        $store->acquire('a', 'killed', 0.2);
        $began = \microtime(true);

        self::assertSame(2, (new Locks($store))->synchronized('a', static fn(Lock $lock): int => $lock->fence));
        self::assertGreaterThanOrEqual(0.2, \microtime(true) - $began);
    }

    public function testALostLockCancelsItsSection(): void
    {
        $store = new class implements LockStore {
            public bool $answers = true;

            public function acquire(string $name, string $owner, float $seconds): ?int
            {
                return 7;
            }

            public function renew(string $name, string $owner, float $seconds): bool
            {
                return $this->answers;
            }

            public function release(string $name, string $owner): bool
            {
                return $this->answers;
            }
        };
        $why = null;
        try {
            (new Locks($store, seconds: 0.15))->synchronized('a', static function () use ($store, &$why): void {
                try {
                    delay(0.2);
                    $store->answers = false;
                    delay(300.0);
                } catch (CancelledException $why) {
                    throw $why;
                }
            });
            self::fail('nothing was thrown');
        } catch (LockLostException $lost) {
            self::assertSame('a', $lost->name);
            self::assertStringContainsString('fencing token 7', $lost->getMessage());
        }
        self::assertInstanceOf(CancelledException::class, $why);
    }

    public function testAStoreThatCannotBeReachedForShortIsAskedAgainAndForLongTheLockIsLost(): void
    {
        $store = new class implements LockStore {
            public int $failures = 3;
            public int $asked = 0;

            public function acquire(string $name, string $owner, float $seconds): ?int
            {
                return 1;
            }

            public function renew(string $name, string $owner, float $seconds): bool
            {
                $this->asked++;

                return $this->failures-- <= 0 ?: throw new ConnectionLostException('gone');
            }

            public function release(string $name, string $owner): bool
            {
                return true;
            }
        };
        $locks = new Locks($store, seconds: 3.0);
        $locks->synchronized('a', static function () use ($store): void {
            while ($store->asked <= 3) {
                delay(0.02);
            }
        });
        self::assertGreaterThan(3, $store->asked);

        $store->failures = \PHP_INT_MAX;
        $began = \microtime(true);
        try {
            $locks->synchronized('a', static fn() => delay(300.0));
            self::fail('nothing was thrown');
        } catch (LockLostException $lost) {
            self::assertInstanceOf(ConnectionLostException::class, $lost->getPrevious());
            self::assertLessThan(30.0, \microtime(true) - $began, 'the section was cancelled, it did not end by itself');
        }
    }

    public function testASectionThatComputedPastTheLocksTimeIsToldWhenItReturns(): void
    {
        $this->expectException(LockLostException::class);
        (new Locks(new MemoryStore(), seconds: 0.05))->synchronized('a', static function (Lock $lock): void {
            for ($end = \hrtime(true) + 80_000_000; \hrtime(true) < $end;);
            self::assertFalse($lock->isHeld());
        });
    }

    public function testALockThatACancelledTaskStillAcquiresIsReleased(): void
    {
        $store = new class implements LockStore {
            public readonly MemoryStore $locks;

            public function __construct()
            {
                $this->locks = new MemoryStore();
            }

            /** As a statement does, it goes on when nobody waits for it any more. */
            public function acquire(string $name, string $owner, float $seconds): ?int
            {
                return detach(function () use ($name, $owner, $seconds): ?int {
                    delay(0.02);

                    return $this->locks->acquire($name, $owner, $seconds);
                })->await();
            }

            public function renew(string $name, string $owner, float $seconds): bool
            {
                return $this->locks->renew($name, $owner, $seconds);
            }

            public function release(string $name, string $owner): bool
            {
                return $this->locks->release($name, $owner);
            }
        };
        run(static function () use ($store): void {
            try {
                timeout(0.005, static fn() => (new Locks($store))->synchronized('a', static fn() => self::fail('entered')));
                self::fail('nothing was thrown');
            } catch (TimeoutException) {
            }
            delay(0.04);
        });

        self::assertSame(2, $store->locks->acquire('a', 'next', 1.0));
    }

    public function testNonsenseIsRefusedByName(): void
    {
        foreach ([static fn() => new Locks(new MemoryStore(), seconds: 0.0), static fn() => new Locks(new MemoryStore(), seconds: \NAN), static fn() => new Locks(new MemoryStore(), seconds: \INF), static fn() => new Locks(new MemoryStore(), seconds: 31_536_001.0), static fn() => (new Locks(new MemoryStore()))->synchronized('', static fn() => null), static fn() => (new Locks(new MemoryStore()))->synchronized(\str_repeat('x', 201), static fn() => null)] as $nonsense) {
            try {
                $nonsense();
                self::fail('accepted');
            } catch (\ValueError $error) {
                self::assertMatchesRegularExpression('/at least 0.05 and at most 31,536,000 seconds|1 to 200 bytes/', $error->getMessage());
            }
        }
        foreach ([["caf\xe9", null, 'UTF-8 without NUL, got "caf?" of 4'], ["a\0b", null, 'UTF-8 without NUL'], ['invoices', \NAN, '"invoices" cannot be waited for: wait must be at least 0 seconds or null, got NAN'], ['invoices', -1.0, 'got -1']] as [$name, $wait, $problem]) {
            try {
                (new Locks(new MemoryStore()))->synchronized($name, static fn() => null, $wait);
                self::fail('accepted');
            } catch (\ValueError $error) {
                self::assertStringContainsString($problem, $error->getMessage());
            }
        }
    }
}
