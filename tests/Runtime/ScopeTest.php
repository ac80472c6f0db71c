<?php

declare(strict_types=1);

namespace Weft\Tests\Runtime;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Runtime\CompositeException;
use Weft\Runtime\CancelledException;
use Weft\Runtime\Scope;
use Weft\Runtime\TimeoutException;
use Weft\UsageError;

use function Weft\all;
use function Weft\any;
use function Weft\async;
use function Weft\delay;
use function Weft\race;
use function Weft\run;
use function Weft\scope;
use function Weft\suppressed;
use function Weft\timeout;
use function Weft\yieldNow;

final class ScopeTest extends TestCase
{
    public function testAScopeEndsWithItsLastTask(): void
    {
        $log = [];
        $result = run(static function () use (&$log): string {
            $result = scope(static function () use (&$log): string {
                async(static function () use (&$log): void {
                    delay(0.005);
                    $log[] = 'task';
                });

                return 'result';
            });
            $log[] = 'after';

            return $result;
        });

        self::assertSame(['task', 'after'], $log);
        self::assertSame('result', $result);
    }

    public function testTheFirstFailureCancelsTheOthersAndIsThrown(): void
    {
        $log = [];
        try {
            run(static function () use (&$log): void {
                async(static function () use (&$log): void {
                    try {
                        delay(60);
                    } catch (CancelledException $cancelled) {
                        $log[] = $cancelled->getMessage();
                        $log[] = $cancelled->getPrevious()->getMessage();
                        throw $cancelled;
                    }
                });
                async(static function (): void {
                    delay(0.001);
                    throw new \DomainException('boo');
                })->named('worker');
                delay(60);
            });
            self::fail('nothing was thrown');
        } catch (\DomainException $failure) {
            self::assertSame('boo', $failure->getMessage());
            self::assertSame([], suppressed($failure));
        }

        self::assertMatchesRegularExpression('/^Task #\d+ closure was cancelled: task #\d+ worker failed: DomainException: boo$/', $log[0]);
        self::assertSame('boo', $log[1]);
    }

    public function testLaterFailuresAreSuppressedByTheFirst(): void
    {
        $work = static function (): void {
            try {
                delay(60);
            } finally {
                throw new \LogicException('clean-up failed');
            }
        };
        try {
            run(static function () use ($work): void {
                async($work);
                async($work);
                yieldNow();
                throw new \DomainException('first');
            });
            self::fail('nothing was thrown');
        } catch (\DomainException $failure) {
            self::assertSame(['clean-up failed', 'clean-up failed'], array_map(static fn($e) => $e->getMessage(), suppressed($failure)));
        }
    }

    public function testAFailureStaysInItsScope(): void
    {
        $result = run(static function (): string {
            $other = async(static fn() => delay(0.01) ?? 'unharmed');
            try {
                scope(static function (): void {
                    async(static fn() => throw new \DomainException('inner'));
                    delay(60);
                });
            } catch (\DomainException) {
            }

            return $other->await();
        });

        self::assertSame('unharmed', $result);
    }

    public function testAScopeWaitsForATaskThatSwallowsItsCancellation(): void
    {
        $log = [];
        try {
            run(static function () use (&$log): void {
                async(static function () use (&$log): void {
                    try {
                        delay(60);
                    } catch (CancelledException) {
                        delay(0.01);
                        $log[] = 'went on';
                    }
                });
                yieldNow();
                throw new \DomainException('boo');
            });
        } catch (\DomainException) {
            $log[] = 'thrown';
        }

        self::assertSame(['went on', 'thrown'], $log);
    }

    public function testCancellingAScopeFromItsBodyKeepsTheResultOfTheBody(): void
    {
        $ticks = 0;
        $result = scope(static function (Scope $scope) use (&$ticks): string {
            $scope->async(static function () use (&$ticks): void {
                while (true) {
                    delay(0.001);
                    $ticks++;
                }
            });
            while ($ticks === 0) {
                delay(0.001);
            }
            $scope->cancel();

            return 'done';
        });

        self::assertSame('done', $result);
        self::assertGreaterThan(0, $ticks);
    }

    public function testATaskCannotBeStartedInAScopeThatHasEnded(): void
    {
        $this->expectException(\Error::class);
        $this->expectExceptionMessage('in a scope that has ended');

        run(static function (): void {
            $scope = scope(static fn(Scope $scope): Scope => $scope);
            $scope->async(static fn() => 1);
        });
    }

    public function testATaskStartedInACancelledScopeNeverRuns(): void
    {
        $started = false;
        scope(static function (Scope $scope) use (&$started): void {
            $scope->cancel();
            $scope->async(static function () use (&$started): void {
                $started = true;
            });
        });

        self::assertFalse($started);
    }

    public function testAllKeepsKeysAndRunsAtTheSameTime(): void
    {
        $steps = [];
        $task = static function (int $value) use (&$steps): int {
            $steps[] = "begins $value";
            delay(0.01);
            $steps[] = "ends $value";

            return $value;
        };
        $results = all(['a' => static fn() => $task(1), 'b' => static fn() => $task(2), 'c' => static fn() => 3]);

        self::assertSame(['a' => 1, 'b' => 2, 'c' => 3], $results);
        self::assertSame(['begins 1', 'begins 2'], \array_slice($steps, 0, 2));
        self::assertSame([], all([]));
    }

    public function testAllRefusesAKeyThatAGeneratorGivesTwice(): void
    {
        $this->expectException(UsageError::class);
        $this->expectExceptionMessage('must be unique, b comes twice');

        all((static function (): \Generator {
            yield 'a' => static fn(): int => 1;
            yield 'b' => static fn(): int => 2;
            yield 'b' => static fn(): int => 3;
        })());
    }

    public function testAnyKeepsTheFailuresOfAKeyThatAGeneratorGivesTwice(): void
    {
        try {
            any((static function (): \Generator {
                yield 0 => static fn() => throw new \DomainException('one');
                yield 0 => static fn() => throw new \DomainException('two');
            })());
            self::fail('nothing was thrown');
        } catch (CompositeException $failed) {
            self::assertSame(['one', 'two'], \array_map(static fn(\Throwable $one): string => $one->getMessage(), $failed->failures));
        }
    }

    public function testAllThrowsTheFirstFailure(): void
    {
        $this->expectException(\DomainException::class);

        all([static fn() => delay(60), static fn() => throw new \DomainException('boo')]);
    }

    public function testAnyReturnsTheFirstSuccessAndCancelsTheOthers(): void
    {
        $cleaned = false;
        $result = any([
            static fn() => throw new \DomainException('boo'),
            static fn() => delay(0.005) ?? 'second',
            static function () use (&$cleaned): void {
                try {
                    delay(60);
                } finally {
                    $cleaned = true;
                }
            },
        ]);

        self::assertSame('second', $result);
        self::assertTrue($cleaned);
    }

    public function testAnyNamesEveryFailure(): void
    {
        try {
            any(['eu' => static fn() => throw new \DomainException('down'), 'us' => static fn() => delay(0.001) ?? throw new \LogicException('away')]);
            self::fail('nothing was thrown');
        } catch (CompositeException $failed) {
            self::assertSame('All 2 alternatives failed: eu: DomainException: down; us: LogicException: away', $failed->getMessage());
            self::assertSame(['eu', 'us'], array_keys($failed->failures));
        }
    }

    public function testRaceEndsLikeTheFirst(): void
    {
        self::assertSame('fast', race([static fn() => delay(60), static fn() => delay(0.001) ?? 'fast']));

        $this->expectException(\DomainException::class);
        race([static fn() => delay(60), static fn() => delay(0.001) ?? throw new \DomainException('boo')]);
    }

    public function testAnAlternativeIsCalledWithoutArguments(): void
    {
        run(static function (): void {
            self::assertSame(3, any([static fn(int $retries = 3): int => $retries]));
            self::assertSame(getmypid(), race(['getmypid']));
        });
    }

    /** @dataProvider contests */
    #[DataProvider('contests')]
    public function testAnAlternativeWinsWhenTheTasksItHasStartedHaveEnded(callable $contest): void
    {
        $ended = false;
        $winner = $contest([static function () use (&$ended): string {
            async(static function () use (&$ended): void {
                delay(0.001);
                $ended = true;
            });

            return 'winner';
        }]);

        self::assertSame('winner', $winner);
        self::assertTrue($ended);
    }

    public static function contests(): iterable
    {
        yield 'any()' => [any(...)];
        yield 'race()' => [race(...)];
    }

    public function testAnAlternativeWhoseTaskFailsHasFailedAndTheOthersGoOn(): void
    {
        $broken = static function (): void {
            async(static fn() => throw new \DomainException('broken'));
            delay(60);
        };
        $replica = static fn(): string => delay(0.005) ?? 'replica';

        self::assertSame('replica', any(['primary' => $broken, 'replica' => $replica]));
        self::assertSame('replica', any(['primary' => static fn() => race([$broken]), 'replica' => $replica]));

        try {
            any(['primary' => $broken]);
            self::fail('nothing was thrown');
        } catch (CompositeException $failed) {
            self::assertSame('broken', $failed->failures['primary']->getMessage());
        }

        $this->expectException(\DomainException::class);
        race([$broken, static fn() => delay(60)]);
    }

    /** @dataProvider functions */
    #[DataProvider('functions')]
    public function testAnItemThatIsAResultInPlaceOfItsFunctionIsNamed(string $function, callable $group): void
    {
        $this->expectException(\TypeError::class);
        $this->expectExceptionMessage("Weft\\{$function}(): item second must be a callable or a Task, got array; pass fn() => … instead of its result");

        $group(['first' => static fn() => delay(60), 'second' => ['a', 'result']]);
    }

    public static function functions(): iterable
    {
        yield 'all()' => ['all', all(...)];
        yield 'any()' => ['any', any(...)];
        yield 'race()' => ['race', race(...)];
    }

    public function testATypeErrorOfTheWorkItselfIsThrownAsItIs(): void
    {
        $this->expectException(\TypeError::class);
        $this->expectExceptionMessage('mine');

        all([static fn() => throw new \TypeError('mine')]);
    }

    public function testARaceOfNobodyIsRefused(): void
    {
        $this->expectException(\ValueError::class);
        race([]);
    }

    public function testARaceDoesNotCancelATaskItWasGiven(): void
    {
        $result = run(static function (): string {
            $task = async(static fn() => delay(0.01) ?? 'own pace');
            race([$task, static fn() => delay(0.001)]);

            return $task->await();
        });

        self::assertSame('own pace', $result);
    }

    public function testATimeoutNamesItsSecondsTheTaskAndTheWait(): void
    {
        $from = microtime(true);
        try {
            run(static fn() => async(static fn() => timeout(0.02, static fn() => delay(60)))->named('sync')->await());
            self::fail('nothing was thrown');
        } catch (TimeoutException $timeout) {
            self::assertStringContainsString("Task $timeout->task did not finish within 0.02 seconds", $timeout->getMessage());
            self::assertStringContainsString('waiting for Weft\delay() at ' . __FILE__, $timeout->getMessage());
            self::assertSame(0.02, $timeout->seconds);
            self::assertMatchesRegularExpression('/^#\d+ sync$/', $timeout->task);
        }
        self::assertLessThan(60.0, microtime(true) - $from, 'it waited for its work');
    }

    public function testTimeoutsThatAreOverLeaveNothingBehind(): void
    {
        $resident = static fn(): int => 4 * (int) \explode(' ', (string) \file_get_contents('/proc/self/statm'))[1];
        $one = static function (): void {
            try {
                timeout(0.0, static fn() => delay(60.0));
            } catch (TimeoutException) {
            }
        };
        $expire = static function (int $times) use ($one): void {
            for ($done = 0; $done < $times; $done += 1_000) {
                all(\array_fill(0, 1_000, $one));
            }
        };
        $grown = run(static function () use ($resident, $expire): int {
            $expire(5_000);
            $before = $resident();
            $expire(40_000);

            return $resident() - $before;
        });

        // They once kept about 150 bytes each.
        self::assertLessThan(3_000, $grown, 'KiB after 40,000 of them');
    }

    public function testATimeoutCancelsTasksStartedInside(): void
    {
        $started = $cleaned = 0;
        // On a busy machine the timeout may be over before the task begins, which then does not.
        while ($started === 0) {
            try {
                timeout(0.01, static function () use (&$started, &$cleaned): void {
                    async(static function () use (&$started, &$cleaned): void {
                        $started++;
                        try {
                            delay(60);
                        } finally {
                            $cleaned++;
                        }
                    });
                });
                self::fail('nothing was thrown');
            } catch (TimeoutException) {
            }
        }
        self::assertSame(1, $cleaned);
    }

    /** @dataProvider nestedLimits */
    #[DataProvider('nestedLimits')]
    public function testTheEarlierOfNestedTimeoutsWins(float $outer, float $inner, string $expected): void
    {
        $caughtBy = $timeout = null;
        try {
            timeout($outer, static function () use ($inner, &$caughtBy, &$timeout): void {
                try {
                    timeout($inner, static fn() => delay(600));
                } catch (TimeoutException $timeout) {
                    $caughtBy = 'inner';
                }
            });
        } catch (TimeoutException $timeout) {
            $caughtBy = 'outer';
        }
        self::assertSame($expected, $caughtBy);
        self::assertSame(min($outer, $inner), $timeout->seconds);
    }

    /** @return iterable<array{float, float, string}> */
    public static function nestedLimits(): iterable
    {
        yield [0.01, 60.0, 'outer'];
        yield [60.0, 0.01, 'inner'];
    }

    public function testWorkThatEndsInTimeLeavesNoTimerBehind(): void
    {
        run(function (): void {
            self::assertSame('quick', timeout(60.0, static fn() => 'quick'));
            delay(0.001);
            self::assertSame(0, \Weft\Native\running());
        });
    }

    public function testANegativeTimeIsRefused(): void
    {
        foreach ([static fn() => delay(-1.0), static fn() => delay(NAN), static fn() => timeout(-0.5, static fn() => 1)] as $call) {
            try {
                $call();
                self::fail('nothing was thrown');
            } catch (\ValueError $error) {
                self::assertStringContainsString('must not be negative', $error->getMessage());
            }
        }
    }

    public function testATimeoutKeepsWhatFailedAfterIt(): void
    {
        $suppressed = [];
        try {
            timeout(0.01, static function (): void {
                try {
                    delay(60);
                } finally {
                    throw new \DomainException('clean-up');
                }
            });
        } catch (TimeoutException $timeout) {
            $suppressed = suppressed($timeout);
        }

        self::assertSame(['clean-up'], array_map(static fn(\Throwable $e) => $e->getMessage(), $suppressed));
    }

    public function testAFailureThatItsAwaitThrowsAgainIsNotSuppressed(): void
    {
        try {
            run(static fn() => async(static fn() => throw new \DomainException('once'))->await());
            self::fail('nothing was thrown');
        } catch (\DomainException $failure) {
        }

        self::assertSame([], suppressed($failure));
    }
}
