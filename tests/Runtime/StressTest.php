<?php

declare(strict_types=1);

namespace Weft\Tests\Runtime;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Native;
use Weft\Runtime\CancelledException;
use Weft\Runtime\Channel;
use Weft\Runtime\ChannelClosedException;
use Weft\Runtime\Internal\Blocking;
use Weft\Runtime\Internal\Scheduler;
use Weft\Runtime\Mutex;
use Weft\Runtime\Scope;
use Weft\Runtime\Semaphore;
use Weft\Runtime\TimeoutException;

use function Weft\async;
use function Weft\delay;
use function Weft\run;
use function Weft\scope;
use function Weft\timeout;
use function Weft\yieldNow;

/** Random schedules with cancellations; a failure names the seed that repeats it. */
final class StressTest extends TestCase
{
    private const SEEDS = 60;

    /** @dataProvider seeds */
    #[DataProvider('seeds')]
    public function testNoPermitIsLostOrGivenTwice(int $seed): void
    {
        \mt_srand($seed);
        $permits = \mt_rand(1, 4);
        $semaphore = new Semaphore($permits);
        $peak = $inside = 0;
        self::withRandomCancellations(40, static function () use ($semaphore, &$peak, &$inside): void {
            $permit = $semaphore->acquire();
            $peak = \max($peak, ++$inside);
            try {
                self::pause();
            } finally {
                $inside--;
                $permit->release();
            }
        });

        self::assertSame([0, $permits], [$inside, $semaphore->availablePermits()]);
        self::assertLessThanOrEqual($permits, $peak);
    }

    /** @dataProvider seeds */
    #[DataProvider('seeds')]
    public function testAMutexIsNeverHeldByTwoAndAlwaysComesBack(int $seed): void
    {
        \mt_srand($seed);
        $mutex = new Mutex();
        $peak = $inside = 0;
        self::withRandomCancellations(40, static function () use ($mutex, &$peak, &$inside): void {
            $mutex->synchronized(static function () use (&$peak, &$inside): void {
                $peak = \max($peak, ++$inside);
                try {
                    self::pause();
                } finally {
                    $inside--;
                }
            });
        });

        self::assertLessThanOrEqual(1, $peak);
        self::assertFalse($mutex->isLocked());
    }

    /** @dataProvider seeds */
    #[DataProvider('seeds')]
    public function testEveryValueThatWasSentIsReceivedOnceAndInOrder(int $seed): void
    {
        \mt_srand($seed);
        $channel = new Channel(\mt_rand(0, 3));
        $sent = $received = [];
        run(static function () use ($channel, &$sent, &$received): void {
            async(static function () use ($channel, &$received): void {
                while (true) {
                    try {
                        // A receiver that is cancelled again and again, and must not lose what was handed to it.
                        timeout(\mt_rand(0, 3) / 2000, static function () use ($channel, &$received): void {
                            while (true) {
                                $received[] = $channel->receive();
                            }
                        });
                    } catch (TimeoutException) {
                        self::pause();
                    } catch (ChannelClosedException) {
                        return;
                    }
                }
            });
            $sender = static function (int $number) use ($channel, &$sent): void {
                for ($i = 0; $i < 5; $i++) {
                    $channel->send([$number, $i]);
                    $sent[] = [$number, $i];
                    self::pause();
                }
            };
            self::withRandomCancellations(12, $sender);
            $channel->close();
        });

        \sort($sent);
        $inOrder = $received;
        \usort($inOrder, static fn(array $a, array $b): int => $a[0] <=> $b[0]);
        \sort($received);
        self::assertSame($sent, $received);
        self::assertSame($received, $inOrder);
    }

    /** @dataProvider seeds */
    #[DataProvider('seeds')]
    public function testATreeOfTasksAlwaysEndsAndLeavesNoOperationBehind(int $seed): void
    {
        \mt_srand($seed);
        $started = $ended = 0;
        $grow = static function (int $depth) use (&$grow, &$started, &$ended): void {
            $started++;
            try {
                for ($i = \mt_rand(0, 3); $depth > 0 && $i > 0; $i--) {
                    $task = async($grow, $depth - 1);
                    if (\mt_rand(0, 4) === 0) {
                        self::pause();
                        $task->cancel();
                    }
                }
                self::pause();
                if (\mt_rand(0, 9) === 0) {
                    throw new \DomainException('random failure');
                }
            } finally {
                try {
                    self::pause();
                } finally {
                    $ended++;
                }
            }
        };
        // What earlier tests of this process have left behind is not this one's.
        $left = Blocking::$finished;
        try {
            run(static fn() => $grow(5));
        } catch (\DomainException | CancelledException) {
        }

        self::assertSame($started, $ended);
        self::assertSame([0, $left], [Native\running(), Blocking::$finished]);
        self::assertNull(Scheduler::$current);
    }

    public function testMemoryStaysFlatOverManyTasks(): void
    {
        $sizes = run(static function (): array {
            $sizes = [];
            for ($round = 0; $round < 5; $round++) {
                for ($i = 1; $i <= 40_000; $i++) {
                    async(static fn() => $i % 100 === 0 ? delay(0.0) : null);
                    if ($i % 100 === 0) {
                        yieldNow();
                    }
                }
                delay(0.01);
                $sizes[] = \memory_get_usage();
            }

            return $sizes;
        });

        // Room for some more pooled fibers, and for less than nine bytes of each of 120,000 tasks.
        self::assertLessThan(1_000_000, $sizes[4] - $sizes[1], 'grew by ' . \implode(', ', $sizes));
    }

    public function testMemoryStaysFlatOverManyRuns(): void
    {
        $cycle = static function (): void {
            run(static fn() => scope(static fn(Scope $scope) => $scope->async(static fn() => delay(0.0))->await()));
        };
        for ($i = 0; $i < 50; $i++) {
            $cycle();
        }
        $before = \memory_get_usage();
        for ($i = 0; $i < 500; $i++) {
            $cycle();
        }
        \gc_collect_cycles();

        self::assertLessThan(20_000, \memory_get_usage() - $before);
    }

    public function testWaitersThatGiveUpDoNotPileUpInAChannel(): void
    {
        $grown = run(static function (): int {
            $channel = new Channel();
            $grown = 0;
            for ($i = 0; $i < 2000; $i++) {
                $task = async($channel->receive(...));
                yieldNow();
                $task->cancel();
                yieldNow();
                $i === 200 && $grown = \memory_get_usage();
            }

            return \memory_get_usage() - $grown;
        });

        self::assertLessThan(40_000, $grown);
    }

    /** @return iterable<string, array{int}> */
    public static function seeds(): iterable
    {
        for ($seed = 1; $seed <= self::SEEDS; $seed++) {
            yield "seed $seed" => [$seed];
        }
    }

    /** Runs `$work` in so many tasks, each with its number, and cancels some of them at random moments. */
    private static function withRandomCancellations(int $tasks, callable $work): void
    {
        run(static function () use ($tasks, $work): void {
            $running = [];
            for ($number = 0; $number < $tasks; $number++) {
                $running[] = async($work, $number);
                if (\mt_rand(0, 1) === 1) {
                    self::pause();
                }
                if (\mt_rand(0, 2) === 0) {
                    $running[\mt_rand(0, $number)]->cancel();
                }
            }
        });
    }

    private static function pause(): void
    {
        match (\mt_rand(0, 3)) {
            0 => null,
            1, 2 => yieldNow(),
            3 => delay(\mt_rand(0, 1) / 1000),
        };
    }
}
