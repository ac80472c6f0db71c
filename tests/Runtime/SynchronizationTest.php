<?php

declare(strict_types=1);

namespace Weft\Tests\Runtime;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Pool\Pool;
use Weft\Pool\PoolOptions;
use Weft\Runtime\CancelledException;
use Weft\Runtime\Channel;
use Weft\Runtime\ChannelClosedException;
use Weft\Runtime\DeadlockException;
use Weft\Runtime\Internal\TurnQueue;
use Weft\Runtime\Local;
use Weft\Runtime\Mutex;
use Weft\Runtime\Semaphore;
use Weft\Runtime\Task;

use function Weft\all;
use function Weft\async;
use function Weft\delay;
use function Weft\detach;
use function Weft\run;
use function Weft\signal;
use function Weft\timeout;
use function Weft\yieldNow;

final class SynchronizationTest extends TestCase
{
    public function testAChannelWithoutCapacityMakesTheSenderWait(): void
    {
        $log = [];
        run(static function () use (&$log): void {
            $channel = new Channel();
            async(static function () use ($channel, &$log): void {
                $channel->send(1);
                $log[] = 'sent';
            });
            yieldNow();
            $log[] = 'receiving';
            $log[] = $channel->receive();
            yieldNow();
        });
        self::assertSame(['receiving', 1, 'sent'], $log);
    }

    public function testAChannelTakesAsManyValuesAsItsCapacity(): void
    {
        run(function (): void {
            $channel = new Channel(2);
            $sender = async(static function () use ($channel): void {
                foreach ([1, 2, 3, 4] as $value) {
                    $channel->send($value);
                }
                $channel->close();
            });
            yieldNow();
            self::assertFalse($sender->isDone());
            self::assertCount(2, $channel);
            self::assertSame([1, 2, 3, 4], iterator_to_array($channel, false));
        });
    }

    public function testSendersAndReceiversAreServedInTheirOrder(): void
    {
        $log = [];
        run(static function () use (&$log): void {
            $channel = new Channel();
            foreach (['a', 'b', 'c'] as $name) {
                async(static function () use ($channel, $name, &$log): void {
                    $log[] = $name . $channel->receive();
                });
            }
            yieldNow();
            foreach ([1, 2, 3] as $value) {
                $channel->send($value);
            }
        });
        self::assertSame(['a1', 'b2', 'c3'], $log);
    }

    public function testClosingWakesEveryReceiverAndSender(): void
    {
        $closed = 0;
        run(static function () use (&$closed): void {
            $channel = new Channel();
            $full = new Channel();
            foreach ([static fn() => $channel->receive(), static fn() => $channel->receive(), static fn() => $full->send(1)] as $wait) {
                async(static function () use ($wait, &$closed): void {
                    try {
                        $wait();
                    } catch (ChannelClosedException) {
                        $closed++;
                    }
                });
            }
            yieldNow();
            $channel->close();
            $full->close();
        });
        self::assertSame(3, $closed);
    }

    public function testAClosedChannelGivesAwayWhatIsInIt(): void
    {
        $channel = new Channel(3);
        $channel->send(1);
        $channel->send(null);
        $channel->close();

        self::assertSame([1, null], iterator_to_array($channel, false));
        $this->expectException(ChannelClosedException::class);
        $channel->send(2);
    }

    public function testASemaphoreLetsOnlySoManyTasksIn(): void
    {
        $peak = $inside = 0;
        run(static function () use (&$peak, &$inside): void {
            $semaphore = new Semaphore(3);
            for ($i = 0; $i < 20; $i++) {
                async($semaphore->withPermit(...), static function () use (&$peak, &$inside): void {
                    $peak = max($peak, ++$inside);
                    delay(0.001);
                    $inside--;
                });
            }
        });
        self::assertSame([3, 0], [$peak, $inside]);
    }

    public function testAPermitComesBackOnceAndWithItsLastReference(): void
    {
        $semaphore = new Semaphore(2);
        $permit = $semaphore->acquire();
        $permit->release();
        $permit->release();
        self::assertSame(2, $semaphore->availablePermits());

        $semaphore->acquire();
        self::assertSame(2, $semaphore->availablePermits());

        $held = [$semaphore->tryAcquire(), $semaphore->tryAcquire()];
        self::assertNull($semaphore->tryAcquire());
        self::assertCount(2, $held);
    }

    public function testAMutexIsNotReEntrantAndKnowsItsOwner(): void
    {
        run(function (): void {
            $mutex = new Mutex();
            $log = [];
            $end = new Channel(1);
            async(static fn() => $mutex->synchronized($end->receive(...)))->named('holder');
            yieldNow();
            foreach ([static fn() => $mutex->unlock(), static fn() => $mutex->synchronized($mutex->lock(...)), static fn() => $mutex->unlock()] as $mistake) {
                try {
                    $mistake();
                } catch (\Error $error) {
                    $log[] = $error->getMessage();
                }
                \count($log) === 1 && $end->send(true);
            }
            self::assertMatchesRegularExpression('/cannot be unlocked by task #\d+ main: task #\d+ holder holds it/', $log[0]);
            self::assertMatchesRegularExpression('/held by the same task #\d+ main already/', $log[1]);
            self::assertStringContainsString('it is not locked', $log[2]);
            self::assertFalse($mutex->isLocked());
        });
    }

    public function testAMutexLetsOneTaskInAtATimeInTheirOrder(): void
    {
        $log = '';
        run(static function () use (&$log): void {
            $mutex = new Mutex();
            foreach (['a', 'b', 'c'] as $name) {
                async($mutex->synchronized(...), static function () use (&$log, $name): void {
                    $log .= $name;
                    delay(0.001);
                    $log .= $name;
                });
            }
        });
        self::assertSame('aabbcc', $log);
    }

    public function testLocalValuesAreInheritedAndOfTheTasksOwn(): void
    {
        $local = new Local('default');
        $seen = run(static function () use ($local): array {
            $local->set('main');
            $child = async(static function () use ($local): array {
                $seen = [$local->value()];
                $local->set('child');
                yieldNow();

                return [...$seen, $local->value()];
            });
            yieldNow();
            $before = $local->value();

            return [...$child->await(), $before, $local->with('inside', $local->value(...)), $local->value()];
        });

        self::assertSame(['main', 'child', 'main', 'inside', 'main'], $seen);
        self::assertSame('default', $local->value());
    }

    public function testALocalOfAScopeIsNotInheritedByDetachedTasks(): void
    {
        $scoped = new Local('default', inDetached: false);
        $other = new Local('default');
        $seen = run(static function () use ($scoped, $other): array {
            $scoped->set('set');
            $other->set('set');
            $detached = detach(static fn(): array => [$scoped->value(), $other->value(), async($scoped->value(...))->await()]);

            return [...$detached->await(), async($scoped->value(...))->await(), $scoped->value()];
        });

        self::assertSame(['default', 'set', 'default', 'set', 'set'], $seen);
    }

    public function testTheValuesOfALocalThatIsGoneAreReleasedByTheTasksThatGoOn(): void
    {
        $kept = run(static function (): array {
            $local = new Local();
            $values = [];
            $set = static function (object $value) use (&$local, &$values): void {
                $values[] = \WeakReference::create($value);
                $local->set($value);
            };
            $set(new \stdClass());
            $tasks = [
                async(static fn() => delay(60)),
                async(static function () use ($set): void {
                    $set(new \stdClass());
                    delay(60);
                }),
                detach(static function () use ($set): void {
                    $set(new \stdClass());
                    async(static fn() => delay(60));
                    delay(60);
                }),
            ];
            yieldNow();
            yieldNow();
            $local = null;
            $kept = \array_map(static fn(\WeakReference $value): bool => $value->get() !== null, $values);
            \array_map(static fn(Task $task) => $task->cancel(), $tasks);

            return $kept;
        });

        self::assertSame([false, false, false], $kept);
    }

    public function testOneOfSeveralSignalsIsWaitedFor(): void
    {
        $signal = run(static function (): int {
            async(static function (): void {
                delay(0.01);
                posix_kill(posix_getpid(), SIGUSR2);
            });

            return signal(SIGUSR1, SIGUSR2);
        });

        self::assertSame(SIGUSR2, $signal);
        self::assertSame(0, \Weft\Native\running());
    }

    public function testASignalThatCannotBeCaughtIsRefused(): void
    {
        $this->expectException(\Error::class);
        $this->expectExceptionMessage('cannot wait for signal ' . SIGKILL);

        run(static fn() => signal(SIGKILL));
    }

    public function testASignalThatComesBeforeItIsWaitedForIsNotLost(): void
    {
        $program = Subprocess::run(<<<'PHP'
            use Weft\Runtime\Internal\Signals;
            run(function () {
                for ($timer = 0; $timer < 500; $timer++) {
                    // The event loop begins them when it looks for work next, and not all at once.
                    Weft\Native\sleep(0.001);
                }
                $signals = new Signals(SIGTERM, SIGUSR1);
                posix_kill(posix_getpid(), SIGTERM);
                delay(0.01);
                echo $signals->wait() === SIGTERM ? "SIGTERM\n" : "another\n";

                $signals = new Signals(SIGTERM);
                $signals->close();
                yieldNow();
                posix_kill(posix_getpid(), SIGTERM);
                echo "not reached\n";
            });
            PHP);

        self::assertSame("SIGTERM\n", $program->output, $program->errors);
    }

    public function testASignalThatDoesNotExistIsNamedAndTheOthersHaveTheirEffectAfterwards(): void
    {
        $program = Subprocess::run(<<<'PHP'
            run(function () {
                for ($timer = 0; $timer < 300; $timer++) {
                    Weft\Native\sleep(0.001);
                }
                try {
                    signal(SIGTERM, 98, 99);
                } catch (Error $error) {
                    echo $error->getMessage(), "\n";
                }
                delay(0.01);
                posix_kill(posix_getpid(), SIGTERM);
                echo "not reached\n";
            });
            PHP);

        self::assertStringStartsWith('cannot wait for signal 98: ', $program->output, $program->errors);
        self::assertStringNotContainsString('not reached', $program->output);
    }

    public function testASecondSignalHasItsEffectAlsoBeforeTheFirstIsWaitedFor(): void
    {
        $program = Subprocess::run(<<<'PHP'
            run(function () {
                $signals = new Weft\Runtime\Internal\Signals(SIGTERM, SIGINT);
                posix_kill(posix_getpid(), SIGINT);
                delay(0.01);
                echo "first\n";
                delay(0.01);
                posix_kill(posix_getpid(), SIGTERM);
                echo "not reached\n";
            });
            PHP);

        self::assertSame("first\n", $program->output, $program->errors);
    }

    public function testADeadlockNamesEachTaskItsWaitAndItsLines(): void
    {
        $cleaned = 0;
        $line = __LINE__ + 6;
        try {
            run(static function () use (&$cleaned): void {
                $mutex = new Mutex();
                $mutex->lock();
                async(static function () use ($mutex, &$cleaned): void {
                    try {
                        $mutex->lock();
                    } finally {
                        $cleaned++;
                    }
                })->named('writer');
                (new Channel())->receive();
            });
            self::fail('nothing was thrown');
        } catch (DeadlockException $deadlock) {
        }
        $message = $deadlock->getMessage();
        self::assertStringContainsString('can wake 2 waiting tasks', $message);
        [$main, $writer] = array_column($deadlock->tasks, 'id');
        self::assertStringContainsString("#$main main", $message);
        self::assertMatchesRegularExpression("/#$writer writer \\(\\d+\\.\\d+ s old, child of #$main, started from SynchronizationTest.php:\\d+\\) waits for a mutex held by task #$main main at /", $message);
        self::assertStringContainsString(__FILE__ . ":" . ($line + 1), $message);
        self::assertCount(2, $deadlock->tasks);
        self::assertSame(1, $cleaned);
    }

    public function testTasksThatCannotStartBecauseAllFibersWaitAreADeadlock(): void
    {
        $this->expectException(DeadlockException::class);
        $this->expectExceptionMessage('1 task could not start because all 1 fibers are in use');

        run(static fn() => async(static fn() => 1)->await(), maxFibers: 1);
    }

    public function testADeadlockInsideAShieldEndsRunAsWell(): void
    {
        $this->expectException(DeadlockException::class);

        run(static fn() => \Weft\shield(static fn() => (new Channel())->receive()));
    }

    public function testATaskThatWaitsForASignalIsNoDeadlock(): void
    {
        $this->expectException(\Weft\Runtime\TimeoutException::class);

        timeout(0.02, static fn() => signal(SIGUSR1));
    }

    public function testOutsideRunAWaitThatNobodyCouldEndIsADeadlock(): void
    {
        $line = __LINE__ + 2;
        try {
            (new Channel())->receive();
            self::fail('nothing was thrown');
        } catch (DeadlockException $deadlock) {
            self::assertStringContainsString('a value from a channel at ' . __FILE__ . ":$line", $deadlock->getMessage());
        }
    }

    public function testACancelledWaiterLeavesTheQueue(): void
    {
        run(function (): void {
            $channel = new Channel();
            $gone = async($channel->receive(...));
            $stays = async($channel->receive(...));
            yieldNow();
            $gone->cancel();
            $channel->send('value');
            self::assertSame('value', $stays->await());
            $this->expectException(CancelledException::class);
            $gone->await();
        });
    }

    public function testADeadlockAfterAFailureEndsRunAsWell(): void
    {
        $this->expectExceptionObject(new \DomainException('the handler failed'));

        run(static function (): void {
            detach(static fn() => throw new \LogicException('reported'));
            \Weft\shield(static fn() => (new Channel())->receive());
        }, uncaught: static fn() => throw new \DomainException('the handler failed'));
    }

    /**
     * @dataProvider abandonedWaits
     *
     * @param list<\Closure(): mixed> $waits of tasks that run() abandons
     * @param \Closure(): mixed $use what a later run does
     */
    #[DataProvider('abandonedWaits')]
    public function testATaskThatItsRunAbandonsLeavesTheQueue(array $waits, \Closure $use, mixed $expected): void
    {
        try {
            run(static fn() => all($waits));
            self::fail('nothing was thrown');
        } catch (DeadlockException) {
        }

        self::assertSame($expected, run($use));
    }

    /** @return iterable<array{list<\Closure(): mixed>, \Closure(): mixed, mixed}> */
    public static function abandonedWaits(): iterable
    {
        // The task ignores the cancellation that reports the deadlock, so its run abandons it.
        $insist = static function (\Closure $wait): mixed {
            try {
                return $wait();
            } catch (CancelledException) {
                return $wait();
            }
        };
        $forEver = static fn(): mixed => $insist((new Channel())->receive(...));

        $channel = new Channel();
        yield 'receive()' => [
            [static fn() => $insist($channel->receive(...))],
            static fn() => all(['sent' => static fn() => $channel->send('value'), 'received' => $channel->receive(...)]),
            ['sent' => null, 'received' => 'value'],
        ];
        $values = new Channel();
        yield 'foreach' => [
            [static fn() => $insist(static fn() => iterator_to_array($values))],
            static fn() => all(['sent' => static fn() => $values->send('value'), 'received' => $values->receive(...)]),
            ['sent' => null, 'received' => 'value'],
        ];
        $rendezvous = new Channel();
        yield 'send()' => [
            [static fn() => $insist(static fn() => $rendezvous->send('of a dead task'))],
            static fn() => all(['sent' => static fn() => $rendezvous->send('value'), 'received' => $rendezvous->receive(...)]),
            ['sent' => null, 'received' => 'value'],
        ];
        $buffered = new Channel(1);
        yield 'send() to a full channel' => [
            [static fn() => $buffered->send('value') ?? $insist(static fn() => $buffered->send('of a dead task'))],
            static fn() => [$buffered->receive(), count($buffered)],
            ['value', 0],
        ];
        $mutex = new Mutex();
        yield 'Mutex' => [
            [static fn() => $mutex->synchronized($forEver), static fn() => $insist($mutex->lock(...))],
            static fn() => $mutex->synchronized(static fn() => 'locked'),
            'locked',
        ];
        $semaphore = new Semaphore(1);
        yield 'Semaphore' => [
            [static fn() => $semaphore->withPermit($forEver), static fn() => $insist($semaphore->acquire(...))],
            static fn() => $semaphore->withPermit(static fn() => $semaphore->availablePermits()),
            0,
        ];
        $pool = new Pool(static fn() => new \stdClass(), new PoolOptions(size: 1));
        yield 'Pool' => [
            [static fn() => $pool->with($forEver)],
            static fn() => $pool->with(static fn() => 'borrowed'),
            'borrowed',
        ];
        $turns = new TurnQueue('a handle');
        yield 'the turn with a handle' => [
            [static fn() => $insist(static fn() => $turns->wait(3))],
            $turns->isEmpty(...),
            true,
        ];
    }
}
