<?php

declare(strict_types=1);

namespace Weft\Tests\Pool;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Pool\Creation;
use Weft\Pool\FactoryDownException;
use Weft\Pool\FactoryException;
use Weft\Pool\ForeignLeaseError;
use Weft\Pool\Holder;
use Weft\Pool\Hooks;
use Weft\Pool\Lease;
use Weft\Pool\LeaseReturnedError;
use Weft\Pool\Leases;
use Weft\Pool\NestedBorrowException;
use Weft\Pool\Lifetime;
use Weft\Pool\Pool;
use Weft\Pool\PoolClosedException;
use Weft\Pool\PoolExhaustedException;
use Weft\Pool\PoolOptions;
use Weft\Pool\ResourceNotReadyException;
use Weft\Pool\StillBorrowedError;
use Weft\Pool\Timeouts;
use Weft\Pool\Validation;
use Weft\Runtime\TimeoutException;
use Weft\Tests\Sql\Support\Witness;

use function Weft\all;
use function Weft\async;
use function Weft\current;
use function Weft\delay;
use function Weft\detach;
use function Weft\race;
use function Weft\run;
use function Weft\timeout;
use function Weft\yieldNow;

final class PoolTest extends TestCase
{
    use Witness;

    private int $made = 0;

    public function testACreationThatTheEndOfARunCutsOffIsMadeAgainForTheNext(): void
    {
        $made = 0;
        $pool = new Pool(static function () use (&$made): \stdClass {
            if (++$made === 1) {
                delay(60);
            }

            return new \stdClass();
        }, new PoolOptions(size: 1, name: 'books'));
        run(static function () use ($pool): void {
            try {
                timeout(0.01, static fn() => $pool->with(static fn() => 1));
                self::fail('borrowed');
            } catch (TimeoutException) {
            }
        });

        self::assertSame('borrowed', run(static fn() => $pool->with(static fn() => 'borrowed')));
        self::assertSame([2, 0], [$made, $pool->stats()['connect_failures']]);
    }

    public function testACreationThatTheEndOfARunCutsOffIsNotMadeAgainForTheCloseOfThePool(): void
    {
        $made = 0;
        $pool = new Pool(static function () use (&$made): \stdClass {
            ++$made;
            delay(60);

            return new \stdClass();
        }, new PoolOptions(size: 1, name: 'books'));
        run(static function () use ($pool): void {
            try {
                timeout(0.01, static fn() => $pool->with(static fn() => 1));
                self::fail('borrowed');
            } catch (TimeoutException) {
            }
        });

        run(static fn() => $pool->close());

        self::assertSame(1, $made);
    }

    public function testCleanUpThatBorrowsAtTheEndOfARunIsToldThatTheFactoryWasCutOff(): void
    {
        $pool = new Pool(static function (): \stdClass {
            delay(60);

            return new \stdClass();
        }, new PoolOptions(size: 1, name: 'books', timeouts: new Timeouts(borrow: 600.0)));
        $failure = null;
        run(static function () use ($pool, &$failure): void {
            detach(static function () use ($pool, &$failure): void {
                try {
                    delay(60);
                } finally {
                    try {
                        $pool->with(static fn() => 1);
                    } catch (\Throwable $failure) {
                    }
                }
            });
            detach(static fn() => $pool->with(static fn() => 1));
            delay(0.01);
        });

        self::assertInstanceOf(FactoryException::class, $failure);
    }

    public function testAPoolIsClosedAfterARunThatHasCutOffTheCloseOfAResource(): void
    {
        $closed = 0;
        $pool = new Pool(static fn() => new \stdClass(), new PoolOptions(size: 2, name: 'books'), close: static function () use (&$closed): void {
            ++$closed;
        });
        run(static function () use ($pool): void {
            $pool->discard($pool->borrow());
            for ($i = 0; $i < 200; $i++) {
                detach(static fn() => delay(1));
            }
            yieldNow();
        }, maxFibers: 3);

        run(static fn() => $pool->close());

        self::assertSame(1, $closed);
    }

    private function pool(PoolOptions $options = new PoolOptions(size: 2), mixed ...$rest): Pool
    {
        return new Pool(function (): \stdClass {
            return (object) ['number' => ++$this->made];
        }, $options, ...$rest);
    }

    // Lending

    public function testTheResourceUsedLastIsLentFirstAndOnlyAsManyAreMadeAsAreNeeded(): void
    {
        $pool = $this->pool(new PoolOptions(size: 5));
        $first = $pool->borrow();
        $second = $pool->borrow();
        self::assertSame([1, 2], [$first->resource()->number, $second->resource()->number]);
        $pool->return($first);
        $pool->return($second);

        self::assertSame(2, $pool->with(static fn (\stdClass $resource): int => $resource->number));
        self::assertSame([2, 2, 0], [$this->made, $pool->stats()['idle'], $pool->stats()['in_use']]);
        $pool->close();
    }

    public function testItWorksInTasksToo(): void
    {
        run(function (): void {
            $pool = $this->pool();
            $numbers = all(\array_fill(0, 20, static fn (): int => $pool->with(static function (\stdClass $resource): int {
                yieldNow();

                return $resource->number;
            })));
            self::assertCount(20, $numbers);
            self::assertLessThanOrEqual(2, $this->made);
            self::assertSame(20, $pool->stats()['borrowed']);
            $pool->close();
        });
    }

    public function testAResourceWhoseHolderWasInterruptedIsReplaced(): void
    {
        run(function (): void {
            $pool = $this->pool();
            $hold = static fn () => $pool->with(static fn () => delay(60));
            $number = static fn (): int => $pool->with(static fn (\stdClass $resource): int => $resource->number);
            // One that is idle is lent without a wait, in which the time could be over.
            self::assertSame(1, $number());
            try {
                timeout(0.001, $hold);
                self::fail('The timeout has thrown nothing');
            } catch (TimeoutException) {
            }
            self::assertSame(2, $number());

            $task = async($hold);
            yieldNow();
            $task->cancel();
            self::assertSame(3, $number(), 'of a cancelled task');

            $task = async(static function () use ($pool): void {
                $lease = $pool->borrow();
                delay(60);
            });
            yieldNow();
            $task->cancel();
            self::assertSame(4, $number(), 'of a lease that ended with its task');
            self::assertSame(4, $number(), 'a holder that was not interrupted returns it');
            self::assertSame(3, $pool->stats()['broken']);
            $pool->close();
        });
    }

    /** @dataProvider interruptedChildren */
    #[DataProvider('interruptedChildren')]
    public function testAResourceInWhichATaskOfItsHolderWasInterruptedIsReplaced(\Closure $interrupt): void
    {
        run(function () use ($interrupt): void {
            foreach ([new Leases(), new Leases(bindToTask: true)] as $leases) {
                $this->made = 0;
                $pool = $this->pool(new PoolOptions(size: 1, leases: $leases));
                $number = static fn (): int => $pool->with(static fn (\stdClass $resource): int => $resource->number);
                $pool->with($interrupt);
                self::assertSame(2, $number());
                self::assertSame(2, $number(), 'a holder without interrupted tasks returns it');
                self::assertSame(1, $pool->stats()['broken']);
                $pool->close();
            }
        });
    }

    /** @return iterable<string, array{\Closure(): mixed}> */
    public static function interruptedChildren(): iterable
    {
        $wait = static fn () => delay(60);
        yield 'by a timeout of its own' => [static fn () => self::thrownBy(static fn () => all([static fn () => timeout(0.001, $wait)]))];
        yield 'as the loser of a race' => [static fn () => race([$wait, yieldNow(...)])];
        $fail = static fn () => throw new \LogicException();
        yield 'by the failure of its sibling' => [static fn () => self::thrownBy(static fn () => all([$wait, $fail]))];
        yield 'by cancel()' => [static function () use ($wait): void {
            $task = async(static fn () => all([$wait]));
            yieldNow();
            $task->cancel();
            self::thrownBy($task->await(...));
        }];
    }

    public function testAnInterruptionBeforeTheBorrowCostsNoResource(): void
    {
        run(function (): void {
            $pool = $this->pool(new PoolOptions(size: 1));
            $number = static fn (): int => $pool->with(static fn (\stdClass $resource): int => $resource->number);
            race([static fn () => delay(60), yieldNow(...)]);
            self::assertSame([1, 1], [$number(), $number()]);
            $other = detach(static fn () => self::thrownBy(static fn () => timeout(0.001, static fn () => delay(60))));
            self::assertInstanceOf(TimeoutException::class, $pool->with($other->await(...)));
            self::assertSame(1, $number(), 'an interruption of a detached task costs none either');
            $pool->close();
        });
    }

    public function testWaitersAreServedFirstComeFirstServed(): void
    {
        run(function (): void {
            $pool = $this->pool(new PoolOptions(size: 1));
            $held = $pool->borrow();
            $order = [];
            $tasks = [];
            foreach (\range(0, 9) as $number) {
                $tasks[] = async(function () use ($pool, $number, &$order): void {
                    $pool->with(function () use ($number, &$order): void {
                        $order[] = $number;
                        yieldNow();
                    });
                });
            }
            yieldNow();
            $pool->return($held);
            \array_map(static fn ($task) => $task->await(), $tasks);
            self::assertSame(\range(0, 9), $order);
        });
    }

    public function testAWaiterTakesWhatIsReturnedWhileItsOwnIsStillBeingMade(): void
    {
        run(function (): void {
            $pool = new Pool(function (): \stdClass {
                $number = ++$this->made;
                delay($number === 1 ? 0.0 : 300.0);

                return (object) ['number' => $number];
            }, new PoolOptions(size: 2));
            $held = $pool->borrow();
            $waiting = async(static fn (): int => $pool->with(static fn (\stdClass $resource): int => $resource->number));
            yieldNow();
            $pool->return($held);
            self::assertSame(1, timeout(60.0, static fn (): int => $waiting->await()));
        });
    }

    public function testAWaiterThatIsCancelledLosesNothing(): void
    {
        run(function (): void {
            $pool = $this->pool(new PoolOptions(size: 1));
            for ($round = 0; $round < 50; $round++) {
                $held = $pool->borrow();
                $quitter = async(static fn (): Lease => $pool->borrow());
                $next = async(static fn (): int => $pool->with(static fn (\stdClass $resource): int => $resource->number));
                yieldNow();
                $pool->return($held);
                $quitter->cancel();
                self::assertSame(1, timeout(60.0, static fn (): int => $next->await()));
            }
            self::assertSame([1, 0, 1], [$pool->stats()['idle'], $pool->stats()['in_use'], $this->made]);
        });
    }

    // Spike (D.2): most pools open 45 here

    public function testASpikeOpensOnlyWhatItNeeds(): void
    {
        run(function (): void {
            $opened = 0;
            $opening = false;
            $pool = new Pool(static function () use (&$opened, &$opening): object {
                $opened++;
                while ($opening) {
                    delay(0.01);
                }

                return new \stdClass();
            }, new PoolOptions(size: 50, minimumIdle: 5));
            self::eventually(static fn (): bool => $pool->stats()['idle'] === 5, 'five are ready');
            self::assertSame(5, $opened);
            $opening = true;
            // None of the new ones is ever ready: the five that were idle serve them all.
            timeout(60.0, static fn () => all(\array_fill(0, 50, static fn (): mixed => $pool->with(static fn () => delay(0.002)))));
            $opening = false;
            self::assertLessThanOrEqual(15, $opened, 'more than 10 new ones');
            $pool->close();
        });
    }

    // Errors

    public function testAnExhaustedPoolNamesItsHoldersWithTaskAgeAndLine(): void
    {
        run(function (): void {
            $pool = $this->pool(new PoolOptions(size: 1, timeouts: new Timeouts(borrow: 0.05), name: 'tools'));
            $holder = async(function () use ($pool): int {
                $lease = $pool->borrow();
                delay(300.0);

                return $lease->id;
            });
            yieldNow();
            $line = __LINE__ - 6;
            try {
                $pool->borrow();
                self::fail('lent twice');
            } catch (PoolExhaustedException $exhausted) {
                self::assertMatchesRegularExpression(
                    '~^pool "tools" is exhausted: 1 of 1 connections in use, 1 waiting, timed out after 50ms; held by task #' . $holder->id() . ' for \d+\.\d+ s from ' . __FILE__ . ":$line$~",
                    $exhausted->getMessage(),
                );
            }
            $holder->cancel();
        });
    }

    public function testATaskThatHoldsEverythingAndWaitsForMoreFailsAtOnce(): void
    {
        $scenario = function (): void {
            $pool = $this->pool(new PoolOptions(size: 1, timeouts: new Timeouts(borrow: 60.0)));
            $lease = $pool->borrow();
            $begin = \microtime(true);
            try {
                $pool->borrow();
                self::fail('lent twice');
            } catch (NestedBorrowException $nested) {
                self::assertStringContainsString(__FILE__, $nested->getMessage());
            }
            self::assertLessThan(30.0, \microtime(true) - $begin, 'it did not wait for its time-out');
            $pool->return($lease);
            self::assertTrue($pool->borrow()->isOpen());
        };
        $scenario();
        run($scenario);
    }

    public function testASlowFactoryIsNotCalledExhaustion(): void
    {
        run(function (): void {
            $pool = new Pool(static fn () => delay(30.0), new PoolOptions(size: 1, timeouts: new Timeouts(borrow: 0.05)));
            $this->expectException(ResourceNotReadyException::class);
            $pool->borrow();
        });
    }

    public function testAFactoryThatNeverReturnsIsCancelledAndThePoolGoesOn(): void
    {
        run(function (): void {
            $cancelled = false;
            $calls = 0;
            $pool = new Pool(static function () use (&$cancelled, &$calls): object {
                if (++$calls === 1) {
                    try {
                        delay(60.0);
                    } finally {
                        $cancelled = true;
                    }
                }

                return new \stdClass();
            }, new PoolOptions(size: 1, timeouts: new Timeouts(create: 0.05)));
            self::assertTrue(self::borrowSoon($pool)->isOpen());
            self::assertTrue($cancelled);
        });
    }

    public function testAFactoryThatThrowsOrReturnsNullIsNamedAndThePoolStaysUsable(): void
    {
        $scenario = function (): void {
            $make = static fn () => throw new \DomainException('no such host');
            $pool = new Pool(static function () use (&$make): mixed {
                return $make();
            }, new PoolOptions(name: 'tools'));
            try {
                $pool->borrow();
                self::fail('lent nothing');
            } catch (FactoryException $failed) {
                self::assertSame('pool "tools": the factory threw DomainException: no such host', $failed->getMessage());
                self::assertInstanceOf(\DomainException::class, $failed->getPrevious());
            }
            // Until the next attempt, which is due after 10 ms at least, borrowers are told at once.
            self::eventually(static function () use ($pool, &$down): bool {
                return ($down = self::thrownBy(static fn () => $pool->borrow())) instanceof FactoryDownException;
            }, 'a borrower that does not wait for the factory');
            self::assertInstanceOf(\DomainException::class, $down->getPrevious());
            $make = static fn () => null;
            self::eventually(static function () use ($pool, &$failed): bool {
                $failed = self::thrownBy(static fn () => $pool->borrow());

                return $failed instanceof FactoryException && !$failed->getPrevious() instanceof \DomainException;
            }, 'a failure of its own for null');
            self::assertStringContainsString('null', $failed->getMessage());
            $make = static fn () => new \stdClass();
            self::assertTrue(self::borrowSoon($pool)->isOpen());
        };
        $scenario();
        run($scenario);
    }

    private static function borrowSoon(Pool $pool): Lease
    {
        for ($deadline = \microtime(true) + 60.0;; delay(0.005)) {
            try {
                return $pool->borrow();
            } catch (FactoryException | FactoryDownException $notYet) {
                if (\microtime(true) > $deadline) {
                    throw $notYet;
                }
            }
        }
    }

    public function testALeaseIsReturnedOnceToItsOwnPoolAndNotUsedAfterwards(): void
    {
        $pool = $this->pool();
        $other = $this->pool();
        $lease = $pool->borrow();
        self::assertInstanceOf(ForeignLeaseError::class, self::thrownBy(static fn () => $other->return($lease)));
        $pool->return($lease);
        self::assertInstanceOf(LeaseReturnedError::class, self::thrownBy(static fn () => $pool->return($lease)));
        self::assertInstanceOf(LeaseReturnedError::class, self::thrownBy(static fn () => $pool->discard($lease)));
        self::assertInstanceOf(LeaseReturnedError::class, self::thrownBy(static fn () => $lease->resource()));
        $next = $pool->borrow();
        unset($lease);
        self::assertSame([1, 0], [$pool->stats()['in_use'], $pool->stats()['idle']], 'a returned lease gives nothing back');
        self::assertTrue($next->isOpen());
    }

    public function testAPoolIsNotClosedByWhoHoldsAResourceAndIsUsableAfterwards(): void
    {
        $pool = $this->pool();
        $lease = $pool->borrow();
        self::assertInstanceOf(StillBorrowedError::class, self::thrownBy(static fn () => $pool->close()));
        $pool->return($lease);
        self::assertSame(1, $pool->with(static fn (\stdClass $resource): int => $resource->number));
        $pool->close();
        self::assertInstanceOf(PoolClosedException::class, self::thrownBy(static fn () => $pool->borrow()));
        $pool->close();
    }

    /** @return iterable<string, array{string, \Closure(): object}> */
    public static function badOptions(): iterable
    {
        yield 'size 0' => ['size', static fn () => new PoolOptions(size: 0)];
        yield 'negative size' => ['size', static fn () => new PoolOptions(size: -1)];
        yield 'total 0' => ['sizeTotal', static fn () => new PoolOptions(sizeTotal: 0)];
        yield 'minimum above size' => ['minimumIdle', static fn () => new PoolOptions(size: 2, minimumIdle: 3)];
        yield 'negative minimum' => ['minimumIdle', static fn () => new PoolOptions(minimumIdle: -1)];
        yield 'no creations' => ['creation.limit', static fn () => new Creation(limit: 0)];
        yield 'jitter above 1' => ['lifetime.jitter', static fn () => new Lifetime(jitter: 1.1)];
        yield 'jitter NaN' => ['lifetime.jitter', static fn () => new Lifetime(jitter: \NAN)];
        $groups = [
            'timeouts' => [Timeouts::class, 'borrow', 'create', 'return'],
            'lifetime' => [Lifetime::class, 'max', 'renewal', 'idle'],
            'validation' => [Validation::class, 'after', 'keepalive', 'timeout'],
            'leases' => [Leases::class, 'leakThreshold'],
        ];
        foreach ($groups as $group => $times) {
            /** @var class-string $class */
            $class = \array_shift($times);
            foreach ($times as $time) {
                foreach (['negative' => -0.1, 'NaN' => \NAN, 'infinite' => \INF] as $what => $value) {
                    yield "{$what} {$group}.{$time}" => ["{$group}.{$time}", static fn () => new $class(...[$time => $value])];
                }
            }
        }
    }

    /**
     * @dataProvider badOptions
     *
     * @param \Closure(): object $options
     */
    #[DataProvider('badOptions')]
    public function testAnOptionThatMakesNoSenseIsRefusedByName(string $name, \Closure $options): void
    {
        $refused = self::thrownBy($options);
        self::assertInstanceOf(\ValueError::class, $refused);
        self::assertStringStartsWith("The option {$name} of a pool must be ", $refused->getMessage());
    }

    public function testEveryOptionReachesTheExtensionUnderTheNameThatItReads(): void
    {
        $native = (new PoolOptions(7, null, 2, new Timeouts(1.0, 2.0, 3.0), new Lifetime(4.0, 0.5, 6.0, 7.0), new Validation(8.0, 9.0, 10.0), new Creation(11, false), new Leases(12.0)))->native();

        self::assertSame([
            'size' => 7, 'minimumIdle' => 2, 'borrowTimeout' => 1.0, 'createTimeout' => 2.0, 'returnTimeout' => 3.0, 'maxLifetime' => 4.0, 'lifetimeJitter' => 0.5,
            'renewalTimeout' => 6.0, 'idleTimeout' => 7.0, 'validateAfter' => 8.0, 'keepaliveInterval' => 9.0, 'validationTimeout' => 10.0, 'connectLimit' => 11,
            'failFast' => false, 'leakThreshold' => 12.0,
        ], $native);
    }

    // Checks, resets, hooks

    public function testAResourceIsResetBeforeAnybodyElseGetsItAndOneThatCannotBeIsClosed(): void
    {
        $scenario = function (): void {
            $closed = [];
            $pool = new Pool(
                function (): \ArrayObject {
                    return new \ArrayObject(['number' => ++$this->made]);
                },
                new PoolOptions(size: 1),
                reset: static function (\ArrayObject $resource): bool {
                    unset($resource['dirt']);

                    return !isset($resource['broken']);
                },
                close: static function (\ArrayObject $resource) use (&$closed): void {
                    $closed[] = $resource['number'];
                },
            );
            $first = $this->made + 1;
            $pool->with(static fn (\ArrayObject $resource) => $resource['dirt'] = true);
            $pool->with(static function (\ArrayObject $resource) use ($first): void {
                self::assertSame(['number' => $first], $resource->getArrayCopy());
                $resource['broken'] = true;
            });
            self::assertSame($first + 1, $pool->with(static fn (\ArrayObject $resource): int => $resource['number']));
            $pool->close();
            self::assertSame([$first, $first + 1], $closed);
        };
        $scenario();
        run($scenario);
    }

    public function testACheckThatTakesTooLongIsCancelledBeforeItsResourceIsClosed(): void
    {
        $log = [];
        \set_error_handler(static function (int $level, string $message) use (&$log): bool {
            $log[] = $message;

            return true;
        });
        try {
            run(function () use (&$log): void {
                $check = static function () use (&$log): bool {
                    $log[] = 'check begins';
                    try {
                        delay(3600.0);
                    } finally {
                        delay(0.001);
                        $log[] = 'check ends';
                    }

                    return true;
                };
                $close = static function () use (&$log): void {
                    $log[] = 'close';
                };
                $pool = $this->pool(new PoolOptions(size: 1, validation: new Validation(after: 0.001, timeout: 0.01)), check: $check, close: $close);
                $pool->with(static fn (\stdClass $resource): null => null);
                delay(0.01);
                $pool->with(static fn (\stdClass $resource): null => null);
                while (!\in_array('close', $log, true)) {
                    delay(0.001);
                }
            });
        } finally {
            \restore_error_handler();
        }

        self::assertCount(4, $log);
        self::assertSame(['check begins', 'check ends', 'close'], [$log[0], $log[1], $log[3]]);
        self::assertStringContainsString('check of resource #1 threw Weft\Runtime\CancelledException', $log[2]);
    }

    public function testAResourceThatWasSilentIsCheckedBeforeItIsLentAndACheckThatThrowsEndsIt(): void
    {
        $warnings = [];
        \set_error_handler(static function (int $level, string $message) use (&$warnings): bool {
            $warnings[] = $message;

            return true;
        });
        try {
            run(function (): void {
                $checks = 0;
                $pool = $this->pool(new PoolOptions(size: 1, validation: new Validation(after: 0.01)), check: static function () use (&$checks): bool {
                    return match (++$checks) {
                        1 => true,
                        2 => false,
                        default => throw new \DomainException('dead'),
                    };
                });
                $numbers = [];
                for ($round = 0; $round < 4; $round++) {
                    $numbers[] = $pool->with(static fn (\stdClass $resource): int => $resource->number);
                    delay(0.03);
                }
                self::assertSame([1, 1, 2, 3], $numbers);
            });
        } finally {
            \restore_error_handler();
        }
        self::assertCount(1, $warnings);
        self::assertStringContainsString('check of resource #2 threw DomainException: dead', $warnings[0]);
    }

    public function testHooksAreCalledInTheOrderOfAResourcesLife(): void
    {
        $log = [];
        $note = static function (string $event) use (&$log): \Closure {
            return static function (\stdClass $resource) use ($event, &$log): void {
                $log[] = "$event {$resource->number}";
            };
        };
        $pool = $this->pool(hooks: new Hooks($note('created'), $note('borrowed'), $note('returned'), $note('closed')));
        $pool->with(static fn () => null);
        $pool->close();
        self::assertSame(['created 1', 'borrowed 1', 'returned 1', 'closed 1'], $log);
    }

    // Tasks

    /** @dataProvider places */
    #[DataProvider('places')]
    public function testAResourceWhoseHookForNewOnesThrowsIsClosedLikeAnyOther(\Closure $in): void
    {
        $in(function (): void {
            $log = [];
            $note = static function (string $moment) use (&$log): \Closure {
                return static function (\stdClass $resource) use (&$log, $moment): void {
                    $log[] = "$moment {$resource->number}";
                };
            };
            $created = static function (\stdClass $resource): void {
                if ($resource->number === 1) {
                    throw new \LogicException('not this one');
                }
            };
            $pool = $this->pool(new PoolOptions(size: 1), close: $note('close'), hooks: new Hooks(created: $created, closed: $note('closed')));
            try {
                $pool->borrow();
                self::fail('it was lent');
            } catch (FactoryException $failure) {
                self::assertSame('not this one', $failure->getPrevious()?->getMessage());
            }
            self::assertSame(['close 1', 'closed 1'], $log);
            $second = self::borrowSoon($pool);
            self::assertSame(2, $second->resource()->number);
            $pool->return($second);
            $pool->close();
            self::assertSame(['close 1', 'closed 1', 'close 2', 'closed 2'], $log);
        });
    }

    public static function places(): iterable
    {
        yield 'in a task' => [static fn (\Closure $test) => run($test)];
        yield 'outside of tasks' => [static fn (\Closure $test) => $test()];
    }

    public function testAResourceWhoseHookForNewOnesTakesTooLongIsClosedLikeAnyOther(): void
    {
        run(function (): void {
            $closed = [];
            $created = static fn (\stdClass $resource) => delay($resource->number === 1 ? 60.0 : 0.0);
            $close = static function (\stdClass $resource) use (&$closed): void {
                $closed[] = $resource->number;
            };
            $pool = $this->pool(new PoolOptions(size: 1, timeouts: new Timeouts(create: 0.5, borrow: 60.0), creation: new Creation(failFast: false)), close: $close, hooks: new Hooks(created: $created));
            self::assertSame(2, $pool->with(static fn (\stdClass $resource): int => $resource->number));
            self::assertSame([1], $closed);
            $pool->close();
            self::assertSame([1, 2], $closed);
        });
    }

    public function testAResourceThatCannotBeClosedIsToldOfAndItsHookIsCalledAllTheSame(): void
    {
        $closed = 0;
        $warnings = [];
        \set_error_handler(static function (int $level, string $message) use (&$warnings): bool {
            $warnings[] = $message;

            return true;
        }, \E_USER_WARNING);
        try {
            $pool = $this->pool(
                new PoolOptions(size: 1, name: 'tools'),
                close: static fn () => throw new \LogicException('stuck'),
                hooks: new Hooks(closed: static function () use (&$closed): void {
                    $closed++;
                }),
            );
            $pool->with(static fn () => null);
            $pool->close();
        } finally {
            \restore_error_handler();
        }
        self::assertSame([1, ['pool "tools": close of resource #1 threw LogicException: stuck']], [$closed, $warnings]);
    }

    public function testAResourceThatATaskHasNotReturnedComesBackWhenItEnds(): void
    {
        run(function (): void {
            $pool = $this->pool(new PoolOptions(size: 1));
            $kept = async(static fn (): Lease => $pool->borrow())->await();
            self::assertFalse($kept->isOpen());
            self::assertSame([1, 0], [$pool->stats()['idle'], $pool->stats()['in_use']]);
        });
    }

    public function testWithoutAutoReturnALeaseOutlivesItsTaskUntilItIsGone(): void
    {
        run(function (): void {
            $pool = $this->pool(new PoolOptions(size: 1, leases: new Leases(autoReturn: false)));
            $kept = async(static fn (): Lease => $pool->borrow())->await();
            self::assertTrue($kept->isOpen());
            unset($kept);
            \gc_collect_cycles();
            self::assertSame(0, $pool->stats()['in_use']);
        });
    }

    public function testABoundTaskGetsWhatItHoldsAndOthersGetTheirOwn(): void
    {
        run(function (): void {
            $pool = $this->pool(new PoolOptions(size: 2, leases: new Leases(bindToTask: true)));
            $outer = $pool->borrow();
            $inner = $pool->borrow();
            self::assertSame($outer, $inner);
            self::assertSame(1, $pool->stats()['in_use']);
            self::assertSame(2, async(static fn (): int => $pool->with(static fn (\stdClass $resource): int => $resource->number))->await());
            $pool->return($inner);
            self::assertTrue($outer->isOpen());
            $pool->return($outer);
            self::assertSame([0, 2], [$pool->stats()['in_use'], $pool->stats()['borrowed']]);
        });
    }

    public function testATaskOfALaterRunIsNotTheTaskThatStillHoldsALease(): void
    {
        $bound = $this->pool(new PoolOptions(size: 2, leases: new Leases(bindToTask: true, autoReturn: false)));
        $first = run(static fn(): Lease => $bound->borrow());
        $second = run(static fn(): Lease => $bound->borrow());
        self::assertNotSame($first->resource(), $second->resource());

        $pool = $this->pool(new PoolOptions(size: 1, timeouts: new Timeouts(borrow: 60.0), leases: new Leases(autoReturn: false)));
        $kept = run(static fn(): Lease => $pool->borrow());
        $resource = $kept->resource();
        $next = run(static function () use ($pool, $kept): Lease {
            async(static function () use ($pool, $kept): void {
                delay(0.02);
                $pool->return($kept);
            });

            return $pool->borrow();
        });
        self::assertSame($resource, $next->resource());
    }

    public function testALeakIsReportedOnceWithTheStackOfItsBorrower(): void
    {
        run(function (): void {
            $leaks = [];
            $pool = $this->pool(new PoolOptions(leases: new Leases(leakThreshold: 0.03), name: 'tools'), hooks: new Hooks(leaked: static function (Holder $holder) use (&$leaks): void {
                $leaks[] = $holder;
            }));
            $lease = $pool->borrow();
            $line = __LINE__ - 1;
            self::eventually(static function () use (&$leaks): bool {
                return $leaks !== [];
            }, 'a report');
            delay(0.1);
            $pool->return($lease);
            self::assertCount(1, $leaks);
            self::assertSame(['tools', current()?->id(), __FILE__, $line], [$leaks[0]->pool, $leaks[0]->task, $leaks[0]->file, $leaks[0]->line]);
            self::assertStringContainsString(__FILE__ . ":$line", (string) $leaks[0]->stack);
            self::assertGreaterThanOrEqual(0.03, $leaks[0]->held);
        });
    }

    // Changes at run time

    public function testUnderLoadItShrinksGrowsSuspendsAndResetsWithoutAnError(): void
    {
        run(function (): void {
            $pool = $this->pool(new PoolOptions(size: 8));
            $busy = true;
            $tasks = [];
            foreach (\range(1, 16) as $ignored) {
                $tasks[] = async(function () use ($pool, &$busy): int {
                    for ($count = 0; $busy; $count++) {
                        $pool->with(static fn () => yieldNow());
                    }

                    return $count;
                });
            }
            self::eventually(static fn (): bool => $pool->stats()['total'] === 8, 'eight are made');
            $pool->resize(2);
            self::eventually(static fn (): bool => $pool->stats()['total'] <= 2, 'the pool shrinks');
            $pool->pause();
            self::eventually(static fn (): bool => $pool->stats()['in_use'] === 0, 'nothing is lent');
            $before = $pool->stats()['borrowed'];
            delay(0.02);
            self::assertSame($before, $pool->stats()['borrowed']);
            $pool->resume();
            $pool->resize(4);
            $made = $this->made;
            $pool->reset();
            self::eventually(fn (): bool => $this->made > $made, 'new ones are made');
            $borrowed = $pool->stats()['borrowed'];
            self::eventually(static fn (): bool => $pool->stats()['borrowed'] >= $borrowed + 1_000, 'a thousand borrows');
            $busy = false;
            foreach ($tasks as $task) {
                self::assertGreaterThan(0, $task->await());
            }
            self::assertLessThanOrEqual(4, $pool->stats()['total']);
        });
    }

    public function testStatisticsCountEverythingTheReferenceCounts(): void
    {
        $pool = $this->pool();
        $pool->with(static fn () => null);
        $stats = $pool->stats();
        foreach (['total', 'idle', 'in_use', 'waiting', 'borrowed', 'created', 'closed', 'timeouts', 'usage_seconds', 'creation_seconds', 'wait_seconds'] as $metric) {
            self::assertArrayHasKey($metric, $stats);
        }
        foreach (['wait', 'usage', 'creation'] as $histogram) {
            self::assertSame(1, \array_sum($stats["{$histogram}_histogram"]), $histogram);
        }
    }

    public function testATotalIsDividedOverTheWorkers(): void
    {
        $sizes = [];
        try {
            \putenv('WEFT_WORKERS=3');
            foreach ([0, 1, 2] as $worker) {
                \putenv("WEFT_WORKER=$worker");
                $sizes[] = (new PoolOptions(sizeTotal: 10))->size;
            }
            self::assertSame(1, (new PoolOptions(sizeTotal: 2))->size);
        } finally {
            \putenv('WEFT_WORKERS');
            \putenv('WEFT_WORKER');
        }
        self::assertSame([4, 3, 3], $sizes);
        self::assertSame(10, (new PoolOptions(sizeTotal: 10))->size);
    }

    public function testAPoolThatWaitsForNothingKeepsNoLoopAlive(): void
    {
        $this->expectException(\Weft\Runtime\DeadlockException::class);
        run(function (): void {
            $pool = $this->pool();
            $pool->with(static fn () => null);
            (new \Weft\Runtime\Channel(0))->receive();
        });
    }

    public function testATimeoutAroundABorrowLeavesThePoolWhole(): void
    {
        run(function (): void {
            $pool = $this->pool(new PoolOptions(size: 1));
            $held = $pool->borrow();
            $other = async(static function () use ($pool): void {
                self::assertInstanceOf(TimeoutException::class, self::thrownBy(static fn () => timeout(0.01, static fn () => $pool->borrow())));
            });
            $other->await();
            $pool->return($held);
            self::assertTrue($pool->borrow()->isOpen());
        });
    }

    private static function thrownBy(\Closure $call): ?\Throwable
    {
        try {
            $call();
        } catch (\Throwable $thrown) {
            return $thrown;
        }

        return null;
    }
}
