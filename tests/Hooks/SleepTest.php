<?php

declare(strict_types=1);

namespace Weft\Tests\Hooks;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Native;
use Weft\Runtime\Hook;
use Weft\Runtime\TimeoutException;
use Weft\Tests\Timing;

use function Weft\all;
use function Weft\async;
use function Weft\current;
use function Weft\delay;
use function Weft\run;
use function Weft\timeout;

/** PHP's own pauses suspend the task. */
final class SleepTest extends TestCase
{
    /** @return iterable<string, array{\Closure(int): mixed}> pauses of so many hundredths of a second, at least */
    public static function pauses(): iterable
    {
        yield 'usleep' => [static fn(int $time): mixed => \usleep($time * 10_000)];
        yield 'time_nanosleep' => [static fn(int $time): mixed => \time_nanosleep(0, $time * 10_000_000)];
        yield 'time_sleep_until' => [static fn(int $time): mixed => \time_sleep_until(\microtime(true) + $time / 100)];
        yield 'stream_select without a ready stream' => [static function (int $time): mixed {
            $read = \stream_socket_pair(\STREAM_PF_UNIX, \STREAM_SOCK_STREAM, 0);
            $none = null;

            return \stream_select($read, $none, $none, 0, $time * 10_000);
        }];
    }

    /**
     * @dataProvider pauses
     *
     * @param \Closure(int): mixed $pause
     */
    #[DataProvider('pauses')]
    public function testTasksThatPauseContinueInTheOrderInWhichTheirPausesEnd(\Closure $pause): void
    {
        $order = [];

        run(static function () use ($pause, &$order): void {
            foreach ([40, 20, 60, 1] as $time) {
                async(static function () use ($pause, $time, &$order): void {
                    $start = \hrtime(true);
                    $pause($time);
                    self::assertGreaterThanOrEqual($time * 10_000_000, \hrtime(true) - $start);
                    $order[] = $time;
                });
            }
        });

        // One after the other, they would end in the order in which they began.
        self::assertSame([1, 20, 40, 60], $order);
    }

    public function testSleepSuspendsAndReturnsZero(): void
    {
        $log = [];

        run(static function () use (&$log): void {
            async(static function () use (&$log): void {
                $log[] = \sleep(1);
            });
            async(static function () use (&$log): void {
                delay(0.01);
                $log[] = 'other';
            });
        });

        self::assertSame(['other', 0], $log);
    }

    public function testTenThousandTasksPauseAtOnce(): void
    {
        $pausing = $most = 0;

        run(static function () use (&$pausing, &$most): void {
            all(\array_fill(0, 10_000, static function () use (&$pausing, &$most): void {
                $most = \max($most, ++$pausing);
                \usleep(2_000_000);
                $pausing--;
            }));
        }, maxFibers: 10_001);

        self::assertSame(10_000, $most);
    }

    public function testHooksThatAreSwitchedOffBlock(): void
    {
        $order = [];
        $task = static function (int $number) use (&$order): \Closure {
            return static function () use ($number, &$order): void {
                $order[] = "$number begins";
                \usleep(1_000);
                $order[] = "$number ends";
            };
        };

        run(static fn() => all([$task(1), $task(2)]), hooks: []);
        self::assertSame(['1 begins', '1 ends', '2 begins', '2 ends'], $order);

        $order = [];
        run(static fn() => all([$task(1), $task(2)]), hooks: [Hook::Sockets]);
        self::assertSame(['1 begins', '1 ends', '2 begins', '2 ends'], $order);

        $order = [];
        run(static fn() => all([$task(1), $task(2)]), hooks: [Hook::Sleep]);
        self::assertSame(['1 begins', '2 begins'], \array_slice($order, 0, 2));
    }

    public function testCodeOutsideOfTasksBlocks(): void
    {
        self::assertNull(current());
        $start = \hrtime(true);
        \usleep(2_000);
        self::assertGreaterThanOrEqual(2_000_000, \hrtime(true) - $start);
    }

    public function testAFiberOfTheUsersOwnInsideOfATaskBlocks(): void
    {
        $log = [];

        run(static function () use (&$log): void {
            async(static function () use (&$log): void {
                $fiber = new \Fiber(static function () use (&$log): void {
                    $log[] = 'begins';
                    \usleep(20_000);
                    $log[] = 'ends';
                });
                $fiber->start();
            });
            async(static function () use (&$log): void {
                $log[] = 'other';
            });
        });

        self::assertSame(['begins', 'ends', 'other'], $log);
    }

    public function testADestructorThatPausesDuringGarbageCollectionBlocks(): void
    {
        $log = [];

        run(static function () use (&$log): void {
            async(static function () use (&$log): void {
                $cycle = new class ($log) {
                    public ?object $self = null;

                    /** @param list<string> $log */
                    public function __construct(private array &$log)
                    {
                    }

                    public function __destruct()
                    {
                        \usleep(20_000);
                        $this->log[] = 'destroyed';
                    }
                };
                $cycle->self = $cycle;
                unset($cycle);
                \gc_collect_cycles();
                $log[] = 'collected';
            });
            async(static function () use (&$log): void {
                delay(0.001);
                $log[] = 'other';
            });
        });

        self::assertSame(['destroyed', 'collected', 'other'], $log);
    }

    public function testACallOnAHelperThreadSuspendsAndIsAbandonedWhenItsTaskIsCancelled(): void
    {
        \function_exists('Weft\Native\nap') || self::markTestSkipped('Only debug builds have the call.');
        $order = [];

        run(static function () use (&$order): void {
            foreach ([400, 1, 200] as $time) {
                async(static function () use ($time, &$order): void {
                    self::assertSame(1, Native\nap($time * 1_000));
                    $order[] = $time;
                });
            }
            try {
                timeout(0.01, static fn(): int => Native\nap(300_000));
                self::fail('It was not cancelled');
            } catch (TimeoutException) {
                $order[] = 'cancelled';
            }
        });

        self::assertSame([200, 400], \array_values(\array_diff($order, [1, 'cancelled'])));
        self::assertSame(5, Native\nap(1), 'Outside of tasks nothing is called.');
    }

    public function testAShortPauseIsShort(): void
    {
        run(static function (): void {
            Timing::assertDoesNotWait(0.5, static function (): void {
                for ($i = 0; $i < 100; $i++) {
                    \usleep(100);
                }
            });
        });
    }
}
