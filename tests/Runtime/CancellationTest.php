<?php

declare(strict_types=1);

namespace Weft\Tests\Runtime;

use PHPUnit\Framework\TestCase;
use Weft\Native;
use Weft\Runtime\CancelledException;
use Weft\Runtime\Channel;
use Weft\Runtime\Internal\Blocking;
use Weft\Runtime\Internal\Scheduler;
use Weft\Runtime\Mutex;
use Weft\Runtime\Scope;
use Weft\Runtime\Semaphore;
use Weft\Runtime\TaskState;
use Weft\Runtime\TimeoutException;

use function Weft\async;
use function Weft\current;
use function Weft\delay;
use function Weft\run;
use function Weft\scope;
use function Weft\shield;
use function Weft\timeout;
use function Weft\yieldNow;

final class CancellationTest extends TestCase
{
    public function testATaskCancelledBeforeItsFirstRunNeverRuns(): void
    {
        $ran = false;
        run(function () use (&$ran): void {
            $task = async(static function () use (&$ran): void {
                $ran = true;
            });
            $task->cancel();
            self::assertSame(TaskState::Cancelled, $task->state());
            yieldNow();
        });
        self::assertFalse($ran);
    }

    public function testCancellingATaskThatHasEndedHasNoEffect(): void
    {
        run(function (): void {
            $task = async(static fn() => 5);
            self::assertSame(5, $task->await());
            $task->cancel();
            self::assertSame([5, TaskState::Completed], [$task->await(), $task->state()]);
        });
    }

    public function testCancellingStopsTheOperation(): void
    {
        run(function (): void {
            $task = async(static fn() => delay(60));
            yieldNow();
            self::assertSame(1, Native\running());
            $task->cancel();
            self::assertSame(0, Native\running());
        });
    }

    public function testFinallyRunsAndMayWait(): void
    {
        $log = [];
        run(static function () use (&$log): void {
            $task = async(static function () use (&$log): void {
                try {
                    delay(60);
                } finally {
                    delay(0.001);
                    $log[] = 'cleaned up';
                }
            });
            yieldNow();
            $task->cancel();
        });
        self::assertSame(['cleaned up'], $log);
    }

    public function testTasksOfACancelledTaskAreCancelledWithIt(): void
    {
        $log = [];
        run(static function () use (&$log): void {
            $begun = new Channel(1);
            $task = async(static function () use ($begun, &$log): void {
                async(static function () use ($begun, &$log): void {
                    try {
                        $begun->send(true);
                        delay(60);
                    } finally {
                        $log[] = 'child';
                    }
                });
            });
            $begun->receive();
            $task->cancel();
        });
        self::assertSame(['child'], $log);
    }

    public function testAShieldedSectionEndsBeforeTheCancellationComes(): void
    {
        $log = [];
        run(function () use (&$log): void {
            $end = new Channel(1);
            $task = async(static function () use ($end, &$log): void {
                shield(static function () use ($end, &$log): void {
                    $end->receive();
                    $log[] = 'section';
                });
                $log[] = 'after section';
                delay(60);
                $log[] = 'not reached';
            });
            yieldNow();
            $task->cancel();
            yieldNow();
            self::assertFalse($task->isDone());
            $end->send(true);
        });
        self::assertSame(['section', 'after section'], $log);
    }

    public function testATaskThatCancelsItselfIsInterruptedAtItsNextSuspension(): void
    {
        $log = [];
        run(function () use (&$log): void {
            $task = async(static function () use (&$log): void {
                current()->cancel('enough');
                $log[] = 'goes on';
                yieldNow();
                $log[] = 'not reached';
            });
            yieldNow();
            yieldNow();
            self::assertSame(TaskState::Cancelled, $task->state());
        });
        self::assertSame(['goes on'], $log);
    }

    public function testATaskThatSwallowsItsCancellationCompletes(): void
    {
        $result = run(static function (): string {
            $task = async(static function (): string {
                try {
                    delay(60);
                } catch (CancelledException) {
                }
                delay(0.001);

                return 'went on';
            });
            yieldNow();
            $task->cancel();

            return $task->await();
        });
        self::assertSame('went on', $result);
    }

    public function testTheAwaitOfATaskCanBeCancelledWithoutTheTask(): void
    {
        $result = run(function (): string {
            $end = new Channel(1);
            $task = async($end->receive(...));
            $waiter = async($task->await(...));
            yieldNow();
            $waiter->cancel();
            yieldNow();
            self::assertSame(TaskState::Cancelled, $waiter->state());
            $end->send('unharmed');

            return $task->await();
        });
        self::assertSame('unharmed', $result);
    }

    public function testACancelledExceptionOfAnotherTaskIsAFailure(): void
    {
        $this->expectException(CancelledException::class);
        $this->expectExceptionMessageMatches('/^Task #\d+ first was cancelled: on purpose$/');

        run(static function (): void {
            $first = async(static fn() => delay(60))->named('first');
            async($first->await(...))->named('second');
            yieldNow();
            $first->cancel('on purpose');
            delay(60);
        });
    }

    public function testATaskKnowsThatItWasCancelledThoughItsExceptionWasReplacedAndNotOfItsTimeoutsAndInnerScopes(): void
    {
        $replaced = static function (): void {
            try {
                delay(60.0);
            } catch (CancelledException) {
            }
        };
        $answers = run(static function () use ($replaced): array {
            $outside = Scheduler::watchCancellation();
            $answers = [$outside()];
            try {
                timeout(0.001, static function () use ($replaced, $outside, &$answers): void {
                    $inTimeout = Scheduler::watchCancellation();
                    $replaced();
                    \array_push($answers, $outside(), $inTimeout());
                });
            } catch (TimeoutException) {
            }
            try {
                scope(static function (Scope $scope) use ($replaced, $outside, &$answers): void {
                    $inScope = Scheduler::watchCancellation();
                    $scope->async(static fn() => throw new \RuntimeException('broken'));
                    $replaced();
                    \array_push($answers, $outside(), $inScope());
                });
            } catch (\RuntimeException) {
            }
            $task = async(static function () use ($replaced): array {
                $watch = Scheduler::watchCancellation();
                $before = $watch();
                scope($replaced);

                return [$before, $watch()];
            });
            delay(0.001);
            $task->cancel();

            return [...$answers, ...$task->await()];
        });

        self::assertSame([false, false, false, false, true, false, true], $answers);
        self::assertFalse(Scheduler::watchCancellation()(), 'outside of run()');
    }

    public function testACancelledScopeOfAnOuterTaskGoesThroughInnerScopes(): void
    {
        $log = [];
        try {
            run(static function () use (&$log): void {
                async(static function (): void {
                    delay(0.005);
                    throw new \DomainException('boo');
                });
                try {
                    scope(static function () use (&$log): void {
                        async(static function () use (&$log): void {
                            try {
                                delay(60);
                            } finally {
                                $log[] = 'inner child';
                            }
                        });
                    });
                } finally {
                    $log[] = 'inner scope';
                }
            });
        } catch (\DomainException $failure) {
            $log[] = $failure->getMessage();
        }
        self::assertSame(['inner child', 'inner scope', 'boo'], $log);
    }

    public function testAValueHandedToATaskThatIsCancelledMeanwhileIsNotLost(): void
    {
        $received = [];
        run(static function () use (&$received): void {
            $channel = new Channel();
            $receiver = async(static function () use ($channel, &$received): void {
                $received[] = $channel->receive();
                delay(60);
            });
            yieldNow();
            $channel->send('value');
            $receiver->cancel();
        });
        self::assertSame(['value'], $received);
    }

    public function testAPermitHandedToATaskThatIsCancelledMeanwhileComesBack(): void
    {
        run(function (): void {
            $semaphore = new Semaphore(1);
            $permit = $semaphore->acquire();
            $waiter = async(static fn() => $semaphore->withPermit(static fn() => delay(60)));
            yieldNow();
            $permit->release();
            $waiter->cancel();
            $semaphore->acquire();
            self::assertSame(TaskState::Cancelled, $waiter->state());
        });
    }

    public function testATimeoutInsideAShieldEndsItsWork(): void
    {
        $this->expectException(\Weft\Runtime\TimeoutException::class);

        run(static fn() => shield(static fn() => timeout(0.01, static fn() => (new Channel())->receive())));
    }

    public function testAFailureInAScopeInsideAShieldEndsItsBody(): void
    {
        $caught = null;
        $swallowed = false;
        run(static function () use (&$caught, &$swallowed): void {
            $task = async(static function () use (&$caught, &$swallowed): void {
                shield(static function () use (&$caught): void {
                    try {
                        scope(static function (Scope $scope): void {
                            $scope->async(static fn() => throw new \DomainException('inside'));
                            (new Channel())->receive();
                        });
                    } catch (\DomainException $caught) {
                    }
                    delay(0.001);
                });
                try {
                    delay(60);
                } catch (CancelledException) {
                    $swallowed = true;
                }
            });
            yieldNow();
            $task->cancel();
        });

        self::assertNotNull($caught);
        self::assertTrue($swallowed);
    }

    public function testAResultThatComesTogetherWithATimeoutIsNotLost(): void
    {
        $before = \count(Blocking::$finished);
        run(static function (): void {
            for ($i = 0; $i < 20; $i++) {
                try {
                    timeout(0.001, static fn() => delay(0.001));
                } catch (TimeoutException) {
                }
            }
        });

        self::assertCount($before, Blocking::$finished);
    }

    public function testAResultThatComesTogetherWithItsTimeoutIsReturned(): void
    {
        $result = run(static function (): string {
            self::computeUntilBothAreOver();

            return timeout(0.01, static function (): string {
                delay(0.005);

                return 'there';
            });
        });

        self::assertSame('there', $result);
    }

    public function testALockThatComesTogetherWithATimeoutIsHeld(): void
    {
        run(static function (): void {
            $mutex = new Mutex();
            async(static function () use ($mutex): void {
                $mutex->lock();
                yieldNow();
                self::compute(0.02);
                $mutex->unlock();
            });
            yieldNow();
            timeout(0.01, $mutex->lock(...));

            self::assertTrue($mutex->isLocked());
            $mutex->unlock();
        });
    }

    public function testAShieldThatFinishesAfterTheTimeoutReturnsItsResult(): void
    {
        self::assertSame('finished', timeout(0.005, static fn(): string => shield(static function (): string {
            delay(0.02);

            return 'finished';
        })));
    }

    public function testAFailureThatComesTogetherWithATimeoutIsThrown(): void
    {
        $this->expectException(\DomainException::class);
        run(static function (): void {
            self::computeUntilBothAreOver();
            timeout(0.01, static function (): void {
                delay(0.005);
                throw new \DomainException('of the work');
            });
        });
    }

    public function testATimeoutThatEndsATaskOfTheWorkIsThrownAlthoughItsBodyHasAResult(): void
    {
        $this->expectException(TimeoutException::class);
        run(static function (): void {
            self::computeUntilBothAreOver();
            timeout(0.01, static function (): string {
                async(static fn() => delay(60));
                delay(0.005);

                return 'there';
            });
        });
    }

    public function testWorkThatWaitsAgainAfterTheTimeIsCancelled(): void
    {
        $this->expectException(TimeoutException::class);
        run(static function (): void {
            self::computeUntilBothAreOver();
            timeout(0.01, static function (): void {
                delay(0.005);
                delay(60);
            });
        });
    }

    public function testTwoTimeoutsThatExpireTogetherBothLeaveAResultAlone(): void
    {
        $result = run(static function (): string {
            self::computeUntilBothAreOver();

            return timeout(0.01, static fn(): string => timeout(0.008, static function (): string {
                delay(0.005);

                return 'there';
            }));
        });

        self::assertSame('there', $result);
    }

    /** The loop looks again only when a wait of 5 ms and a limit of 10 ms, both begun by the caller, have passed. */
    private static function computeUntilBothAreOver(): void
    {
        async(static fn() => self::compute(0.03));
    }

    private static function compute(float $seconds): void
    {
        for ($end = \hrtime(true) + $seconds * 1e9; \hrtime(true) < $end;);
    }
}
