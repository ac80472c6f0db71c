<?php

declare(strict_types=1);

namespace Weft\Tests\Runtime;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Log\Format;
use Weft\Log\StreamLogger;
use Weft\Native;
use Weft\Pool\Pool;
use Weft\Runtime\CancelledException;
use Weft\Runtime\Channel;
use Weft\Runtime\Internal\Scheduler;
use Weft\Runtime\Local;
use Weft\Runtime\Mutex;
use Weft\Runtime\Scope;
use Weft\Runtime\Semaphore;
use Weft\Runtime\TaskState;
use Weft\Runtime\Trace;

use function Weft\async;
use function Weft\current;
use function Weft\delay;
use function Weft\detach;
use function Weft\run;
use function Weft\scope;
use function Weft\shield;
use function Weft\signal;
use function Weft\tasks;
use function Weft\timeout;
use function Weft\yieldNow;

final class TaskTest extends TestCase
{
    public function testRunReturnsWhatTheMainTaskReturns(): void
    {
        self::assertSame(7, run(static fn() => 7));
    }

    public function testRunEndsAfterTheLastTask(): void
    {
        $log = [];
        run(static function () use (&$log): void {
            async(static function () use (&$log): void {
                async(static function () use (&$log): void {
                    delay(0.01);
                    $log[] = 'grandchild';
                });
                $log[] = 'child';
            });
            $log[] = 'main';
        });

        self::assertSame(['main', 'child', 'grandchild'], $log);
    }

    public function testTasksTakeTurns(): void
    {
        $log = '';
        run(static function () use (&$log): void {
            foreach (['a', 'b', 'c'] as $name) {
                async(static function () use (&$log, $name): void {
                    $log .= $name;
                    yieldNow();
                    $log .= $name;
                });
            }
        });

        self::assertSame('abcabc', $log);
    }

    public function testTasksWhoseWaitIsOverGoOnBeforeNewTasksAndThoseThatYieldAfterThem(): void
    {
        $log = [];
        run(static function () use (&$log): void {
            $channel = new Channel(1);
            async(static function () use ($channel, &$log): void {
                $channel->receive();
                $log[] = 'waited';
            });
            yieldNow();
            async(static function () use (&$log): void {
                $log[] = 'new';
            });
            $channel->send(1);
            yieldNow();
            $log[] = 'yielded';
        });

        self::assertSame(['waited', 'new', 'yielded'], $log);
    }

    public function testDelaysRunAtTheSameTime(): void
    {
        $from = microtime(true);
        run(static function (): void {
            for ($i = 0; $i < 100; $i++) {
                async(static fn() => delay(0.2));
            }
        });

        self::assertGreaterThanOrEqual(0.2, microtime(true) - $from);
        self::assertLessThan(20.0, microtime(true) - $from, 'one after the other they would take 20 s');
    }

    public function testADelayBeginsWithItsCallWhateverOtherTasksComputeBeforeTheyWait(): void
    {
        $log = [];
        run(static function () use (&$log): void {
            async(static function () use (&$log): void {
                delay(0.02);
                $log[] = 'called first, ends first';
            });
            async(static function () use (&$log): void {
                for ($end = hrtime(true) + 10_000_000; hrtime(true) < $end;) {
                }
                delay(0.015);
                $log[] = 'called later';
            });
        });

        self::assertSame(['called first, ends first', 'called later'], $log);
    }

    public function testManyTasksCanAwaitTheSameOne(): void
    {
        $results = run(static function (): array {
            $task = async(static fn() => delay(0.005) ?? 'value');
            $waiters = [];
            for ($i = 0; $i < 3; $i++) {
                $waiters[] = async($task->await(...));
            }

            return [...array_map(static fn($waiter) => $waiter->await(), $waiters), $task->await()];
        });

        self::assertSame(['value', 'value', 'value', 'value'], $results);
    }

    public function testArgumentsArePassedOn(): void
    {
        self::assertSame('2-1', run(static fn() => async(static fn(int $a, int $b) => "$b-$a", b: 2, a: 1)->await()));
    }

    public function testTasksOfDifferentRunsHaveDifferentIds(): void
    {
        $ids = [run(static fn(): int => current()->id()), run(static fn(): int => current()->id())];

        self::assertGreaterThan($ids[0], $ids[1]);
    }

    public function testATaskCannotAwaitItself(): void
    {
        $this->expectException(\Error::class);
        $this->expectExceptionMessageMatches('/^Task #\d+ main cannot wait for its own end$/');

        run(static fn() => current()->await());
    }

    public function testATaskThatIsUsedAsAStringNamesTheForgottenAwait(): void
    {
        run(function (): void {
            $task = async(static fn(): int => 5);
            try {
                echo "x{$task}";
                self::fail('a task became a text');
            } catch (\Error $error) {
                self::assertMatchesRegularExpression('/^Task #\d+ .+ was used as a string: use its result, \$task->await\(\)$/', $error->getMessage());
            }
        });
    }

    public function testAsyncOutsideRunIsRefused(): void
    {
        $this->expectException(\Error::class);
        $this->expectExceptionMessage('call it inside Weft\run()');

        async(static fn() => 1);
    }

    public function testATaskKnowsItsNameAndState(): void
    {
        run(function (): void {
            $end = new Channel(1);
            $task = async($end->receive(...))->named('sync');
            self::assertSame([current()->id() + 1, 'sync', TaskState::Queued, false], [$task->id(), $task->name(), $task->state(), $task->isDone()]);
            yieldNow();
            self::assertSame(TaskState::Waiting, $task->state());
            $end->send(true);
            $task->await();
            self::assertSame([TaskState::Completed, true, 'sync'], [$task->state(), $task->isDone(), $task->name()]);
            self::assertSame(TaskState::Running, current()->state());
        });
        self::assertNull(current());
    }

    public function testAnAwaitedTaskKeepsItsResultAfterRun(): void
    {
        $task = run(static fn() => async(static fn() => 5));

        self::assertSame(5, $task->await());
    }

    public function testTasksAreListedWithWhatTheyWaitFor(): void
    {
        $from = microtime(true);
        $line = __LINE__ + 2;
        $list = scope(static function (Scope $scope): array {
            async(static fn() => delay(60))->named('sleeper');
            async(static fn() => (new Channel())->receive())->named('reader');
            yieldNow();
            $list = tasks();
            $scope->cancel();

            return $list;
        });
        [$main, $sleeper, $reader] = $list;

        self::assertSame(['main', null, TaskState::Running], [$main->name, $main->parent, $main->state]);
        self::assertSame(['sleeper', $main->id, TaskState::Waiting], [$sleeper->name, $sleeper->parent, $sleeper->state]);
        self::assertSame('Weft\delay()', $sleeper->waitsFor);
        self::assertSame(__FILE__ . ":$line", $sleeper->place);
        self::assertSame(basename(__FILE__) . ":$line", $sleeper->origin);
        self::assertSame('a value from a channel', $reader->waitsFor);
        self::assertGreaterThanOrEqual(0.0, $reader->age);
        self::assertLessThanOrEqual(microtime(true) - $from, $reader->age);
    }

    public function testADetachedTaskIsCancelledWhenRunEnds(): void
    {
        $log = [];
        run(static function () use (&$log): void {
            detach(static function () use (&$log): void {
                try {
                    delay(60);
                } finally {
                    delay(0.001);
                    $log[] = 'cleaned up';
                }
            });
            yieldNow();
            $log[] = 'main';
        });

        self::assertSame(['main', 'cleaned up'], $log);
    }

    public function testTheFailureOfADetachedTaskGoesToTheHandler(): void
    {
        $seen = [];
        $result = run(static function (): string {
            detach(static fn() => throw new \DomainException('lost'))->named('mailer');
            delay(0.005);

            return 'goes on';
        }, uncaught: static function (\Throwable $error, $task) use (&$seen): void {
            $seen[] = [$error->getMessage(), $task->name()];
        });

        self::assertSame([['lost', 'mailer']], $seen);
        self::assertSame('goes on', $result);
    }

    public function testAFailingHandlerEndsRun(): void
    {
        $this->expectExceptionMessage('the log is full');

        run(static function (): void {
            detach(static fn() => throw new \DomainException('lost'));
            delay(60);
        }, uncaught: static fn() => throw new \RuntimeException('the log is full'));
    }

    public function testMoreTasksThanFibersWaitForTheirStart(): void
    {
        $peak = $now = 0;
        run(static function () use (&$peak, &$now): void {
            for ($i = 0; $i < 50; $i++) {
                async(static function () use (&$peak, &$now): void {
                    $peak = max($peak, ++$now);
                    delay(0.001);
                    $now--;
                });
            }
        }, maxFibers: 11);

        self::assertSame([10, 0], [$peak, $now]);
    }

    public function testADelayOfNothingIsATurnForTheOthersAndNoTimer(): void
    {
        $order = run(static function (): array {
            $order = [];
            $other = async(static function () use (&$order): void {
                $order[] = 'other';
                $order[] = Native\running();
                delay(0.0);
                $order[] = 'other again';
            });
            $order[] = 'first';
            delay(0.0);
            $order[] = 'first again';
            $other->await();

            return $order;
        });

        self::assertSame(['first', 'other', 0, 'first again', 'other again'], $order);
    }

    public function testADelayOfNothingWorksWhereNoTaskCanYield(): void
    {
        delay(0.0);
        $program = Subprocess::run(<<<'PHP'
            run(function () {
                async(function () { try { delay(60); } finally { delay(0.0); echo "cleaned up\n"; } });
                yieldNow();
                exit(3);
            });
            PHP);

        self::assertSame("cleaned up\n", $program->output, $program->errors);
        self::assertSame('', $program->errors);
    }

    public function testAnOperationThatFinishedBeforeItsAwaitIsNotLost(): void
    {
        $first = Native\sleep(0.0);
        $second = Native\sleep(0.01);
        Scheduler::await($second);
        Scheduler::await($first);

        run(static function (): void {
            $first = Native\sleep(0.0);
            delay(0.01);
            Scheduler::await($first);
        });
        self::assertSame(0, Native\running());
    }

    public function testAPanicOfTheExtensionIsAnError(): void
    {
        if (!\function_exists('Weft\Native\panic')) {
            self::markTestSkipped('only debug builds can panic on purpose');
        }
        $errors = run(static function (): array {
            $errors = [];
            foreach ([false, true] as $inOperation) {
                try {
                    Scheduler::await(Native\panic($inOperation));
                } catch (\Error $error) {
                    $errors[] = $error->getMessage();
                }
            }
            delay(0.001);

            return $errors;
        });

        self::assertStringContainsString('on purpose, in a call', $errors[0]);
        self::assertSame('Rust panic: on purpose, in an operation', $errors[1]);
    }

    public function testAFiberOfTheUsersOwnInsideATaskIsRefusedInsteadOfConfused(): void
    {
        $this->expectException(\Error::class);
        $this->expectExceptionMessage('Code in a Fiber made inside of a task cannot wait');

        run(static function (): void {
            (new \Fiber(static fn() => delay(0.001)))->start();
        });
    }

    public function testRunInsideATaskIsAScope(): void
    {
        $log = [];
        $result = run(static function () use (&$log): int {
            $result = run(static function () use (&$log): int {
                async(static function () use (&$log): void {
                    delay(0.001);
                    $log[] = 'inner task';
                });

                return 3;
            });
            $log[] = 'after inner run';

            return $result;
        });

        self::assertSame(['inner task', 'after inner run'], $log);
        self::assertSame(3, $result);
    }

    public function testATaskCanBeNamedByItsFunction(): void
    {
        self::assertSame(self::class . '::named', run(static fn() => async([self::class, 'named'])->name()));
    }

    public static function named(): void
    {
    }

    public function testAwaitOfACancelledTaskThrows(): void
    {
        $this->expectException(CancelledException::class);
        $this->expectExceptionMessageMatches('/^Task #\d+ sync was cancelled: not needed$/');

        run(static function (): void {
            $task = async(static fn() => delay(60))->named('sync');
            yieldNow();
            $task->cancel('not needed');
            $task->await();
        });
    }

    public function testAFiberOfTheUsersOwnCannotWaitForAnotherTask(): void
    {
        $this->expectException(\Error::class);
        $this->expectExceptionMessage('Code in a Fiber made inside of a task cannot wait');

        run(static function (): void {
            (new \Fiber(static fn() => (new Channel())->receive()))->start();
        });
    }

    public function testAFiberOfTheUsersOwnBelongsToTheTaskThatRunsIt(): void
    {
        $local = new Local('default');
        $see = static fn(): array => [current()?->name(), $local->value(), Trace::current()?->traceId()];
        run(static function () use ($local, $see): void {
            $local->set('of main');
            $trace = Trace::continue(null);
            $fiber = new \Fiber(static function () use ($local, $see): array {
                \Fiber::suspend($see());
                $seen = $see();
                $local->set('set in the fiber');

                return $seen;
            });
            self::assertSame(['main', 'of main', $trace->traceId()], $trace->run($fiber->start(...)));

            async(static function () use ($fiber, $local): void {
                $local->set('of the other');
                $fiber->resume();
                self::assertSame('set in the fiber', $local->value());
            })->named('other')->await();
            self::assertSame(['other', 'of the other', null], $fiber->getReturn());
            self::assertSame('of main', $local->value());
        });
    }

    public function testAFiberOfTheUsersOwnMayDoWhatDoesNotWait(): void
    {
        $mutex = new Mutex();
        $semaphore = new Semaphore(1);
        $channel = new Channel(1);
        $pool = new Pool(static fn() => new \stdClass());
        $log = fopen('php://memory', 'w+');
        $calls = [
            'mutex' => static fn() => $mutex->synchronized(static fn() => $mutex->isHeldByCurrentTask()),
            'semaphore' => static fn() => $semaphore->withPermit(static fn() => $semaphore->availablePermits()),
            'channel' => static fn() => $channel->send('value') ?? $channel->receive(),
            'pool' => static fn() => $pool->with(static fn() => 'with'),
            'lease' => static fn() => $pool->borrow()->task(),
            'log' => static fn() => (new StreamLogger($log, Format::Json))->info('logged'),
            'shield' => static fn() => shield(static fn() => 'shielded'),
        ];
        [$results, $main] = run(static function () use ($calls, $pool): array {
            $pool->with(static fn() => 'creates the resource, for which the task waits');
            $results = array_map(static function (\Closure $call): mixed {
                $fiber = new \Fiber($call);
                $fiber->start();

                return $fiber->getReturn();
            }, $calls);

            return [$results, current()->id()];
        });

        self::assertSame(
            ['mutex' => true, 'semaphore' => 0, 'channel' => 'value', 'pool' => 'with', 'lease' => $main, 'log' => null, 'shield' => 'shielded'],
            $results,
        );
        rewind($log);
        self::assertSame('logged', json_decode((string) stream_get_contents($log), true)['message']);
    }

    /** @dataProvider waits */
    #[DataProvider('waits')]
    public function testAFiberOfTheUsersOwnIsRefusedWhereItWouldWait(\Closure $wait): void
    {
        run(function () use ($wait): void {
            $mutex = new Mutex();
            async(static fn() => $mutex->synchronized(static fn() => delay(0.001)));
            yieldNow();
            $fiber = new \Fiber(static fn() => $wait($mutex));
            try {
                $fiber->start();
                self::fail('nothing was thrown');
            } catch (\Error $refused) {
                self::assertStringContainsString('Code in a Fiber made inside of a task cannot wait', $refused->getMessage());
            }
            // The task itself waits as before.
            self::assertSame('locked', $mutex->synchronized(static fn() => 'locked'));
        });
    }

    /** @return iterable<array{\Closure(Mutex): mixed}> */
    public static function waits(): iterable
    {
        yield 'a mutex of another task' => [static fn(Mutex $mutex) => $mutex->lock()];
        yield 'yieldNow()' => [static fn() => yieldNow()];
        yield 'scope()' => [static fn() => scope(static fn() => 1)];
        yield 'timeout()' => [static fn() => timeout(1.0, static fn() => 1)];
        yield 'signal()' => [static fn() => signal(SIGUSR1)];
        yield 'a pool that creates a resource' => [static fn() => (new Pool(static fn() => new \stdClass()))->borrow()];
    }

    public function testADestructorThatWaitsOnTheLoopTakesNothingFromTheTasks(): void
    {
        $log = [];
        run(static function () use (&$log): void {
            async(static function () use (&$log): object {
                yieldNow();

                return new class ($log) {
                    /** @param list<string> $log */
                    public function __construct(private array &$log)
                    {
                    }

                    public function __destruct()
                    {
                        $this->log[] = 'begun';
                        delay(0.02);
                        $this->log[] = 'destroyed';
                    }
                };
            });
            // Its last delay is over while the destructor waits.
            async(static function () use (&$log): void {
                while ($log === []) {
                    delay(0.001);
                }
                $log[] = 'goes on';
            });
        });

        self::assertSame(['begun', 'destroyed', 'goes on'], $log);
    }

    public function testAnExceptionOfADestructorEndsRun(): void
    {
        $this->expectExceptionObject(new \DomainException('from a destructor'));

        run(static function (): void {
            $thrower = new class () {
                public function __destruct()
                {
                    throw new \DomainException('from a destructor');
                }
            };
            async(static fn() => \get_class($thrower), $thrower);
            unset($thrower);
        });
    }

    public function testAnExceptionOfTheLoopItselfCancelsEveryTask(): void
    {
        $cancelled = $cleaned = 0;
        try {
            run(static function () use (&$cancelled, &$cleaned): void {
                for ($i = 0; $i < 200; $i++) {
                    async(static function () use (&$cancelled, &$cleaned): void {
                        try {
                            while (true) {
                                yieldNow();
                            }
                        } catch (CancelledException $cancellation) {
                            $cancelled++;
                            throw $cancellation;
                        } finally {
                            delay(0.001);
                            $cleaned++;
                        }
                    });
                }
                yieldNow();
                Scheduler::$current?->watch(Native\sleep(0.0), static fn() => throw new \DomainException('on the loop'));
                delay(60);
            });
            self::fail('nothing was thrown');
        } catch (\DomainException $failure) {
            self::assertSame('on the loop', $failure->getMessage());
        }

        self::assertSame([200, 200], [$cancelled, $cleaned]);
    }

    public function testATaskWhoseTurnComesIsReportedAsReady(): void
    {
        $states = [];
        run(static function () use (&$states): void {
            async(static function () use (&$states): void {
                yieldNow();
                $states = array_column(tasks(), 'state', 'id');
            });
            $ready = async(yieldNow(...))->id();
            while ($states === []) {
                delay(0.001);
            }
            $states = $states[$ready];
        });

        self::assertSame(TaskState::Ready, $states);
    }

    public function testTheHandlerOfAFailedDetachedTaskMayWait(): void
    {
        $log = [];
        run(static function (): void {
            detach(static fn() => throw new \DomainException());
            yieldNow();
        }, uncaught: static function () use (&$log): void {
            delay(0.01);
            $log[] = 'reported';
        });

        self::assertSame(['reported'], $log);
    }
}
