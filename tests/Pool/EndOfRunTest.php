<?php

declare(strict_types=1);

namespace Weft\Tests\Pool;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Pool\Hooks;
use Weft\Pool\Pool;
use Weft\Pool\PoolClosedException;
use Weft\Pool\PoolExhaustedException;
use Weft\Pool\PoolOptions;
use Weft\Pool\ResourceNotReadyException;
use Weft\Pool\Timeouts;
use Weft\Runtime\TimeoutException;

use function Weft\async;
use function Weft\delay;
use function Weft\detach;
use function Weft\run;
use function Weft\tasks;
use function Weft\timeout;
use function Weft\yieldNow;

/** Factories, resets and hooks that are cut off: by the end of a run, by close(), or by a timeout of the pool. */
final class EndOfRunTest extends TestCase
{
    private int $made = 0;
    /** @var list<int> */
    private array $closed = [];

    /** A pool whose first factory hangs. */
    private function pool(float $create = 30.0): Pool
    {
        return new Pool(function (): \stdClass {
            $number = ++$this->made;
            delay($number === 1 ? 3600.0 : 0.0);

            return (object) ['number' => $number];
        }, new PoolOptions(size: 1, timeouts: new Timeouts(create: $create), name: 'tools'), close: function (\stdClass $resource): void {
            $this->closed[] = $resource->number;
        });
    }

    private static function number(Pool $pool): int
    {
        return $pool->with(static fn(\stdClass $resource): int => $resource->number);
    }

    public function testACreationThatTheEndOfARunCutsOffBeginsAgainInTheNext(): void
    {
        $pool = $this->pool();
        self::cutOff($pool);
        self::assertSame(2, run(static fn(): int => self::number($pool)));
        self::assertSame(0, $pool->stats()['connect_failures'], 'it says nothing about the server');
        $pool->close();
        self::assertSame([2], $this->closed);
    }

    public function testItBeginsAgainForABorrowerOutsideOfRun(): void
    {
        $pool = $this->pool();
        self::cutOff($pool);
        self::assertSame(2, self::number($pool));
        self::assertSame(0, $pool->stats()['connect_failures']);
        $pool->close();
    }

    public function testACreationThatHasNotBegunBeginsInTheNextRun(): void
    {
        $pool = new Pool(fn(): \stdClass => (object) ['number' => ++$this->made], new PoolOptions(size: 1, name: 'tools'));
        run(static function () use ($pool): void {
            detach(static fn() => delay(3600.0));
            detach(static function () use ($pool): void {
                self::queueTasks();
                $pool->borrow();
            });
            self::waitForTask('factory of pool "tools"');
        }, maxFibers: 3);
        self::assertSame([0, 1], [$this->made, $pool->stats()['connecting']]);
        self::assertSame(1, run(static fn(): int => self::number($pool)));
        $pool->close();
    }

    /** @dataProvider places */
    #[DataProvider('places')]
    public function testAPoolWhoseCreationWasCutOffCanBeClosed(\Closure $in): void
    {
        $pool = $this->pool(create: 0.0);
        self::cutOff($pool);
        $in($pool->close(...));
        self::assertSame([1, 0], [$this->made, $pool->stats()['total']], 'no factory runs for a pool that closes');
        self::assertInstanceOf(PoolClosedException::class, self::thrownBy($pool->borrow(...)));
    }

    /** @dataProvider places */
    #[DataProvider('places')]
    public function testAResourceWhoseCloseWasCutOffIsClosedWithItsPool(\Closure $in): void
    {
        $closed = 0;
        $close = static function () use (&$closed): void {
            ++$closed;
        };
        $pool = new Pool(static fn(): \stdClass => new \stdClass(), new PoolOptions(size: 1, name: 'tools'), close: $close);
        run(static function () use ($pool): void {
            $lease = $pool->borrow();
            detach(static fn() => delay(3600.0));
            yieldNow();
            self::queueTasks();
            $pool->discard($lease);
            self::waitForTask('close of resource #1 of pool "tools"');
        }, maxFibers: 2);
        self::assertSame(0, $closed);
        $in($pool->close(...));
        self::assertSame(1, $closed);
    }

    public static function places(): iterable
    {
        yield 'in a task' => [static fn(\Closure $test) => run($test)];
        yield 'outside of tasks' => [static fn(\Closure $test) => $test()];
    }

    public function testCloseCancelsAFactoryThatHangsAndWaitsForItsEnd(): void
    {
        $log = [];
        run(static function () use (&$log): void {
            $hasBegun = false;
            $pool = new Pool(static function () use (&$log, &$hasBegun): void {
                $hasBegun = true;
                try {
                    delay(3600.0);
                } finally {
                    delay(0.005);
                    $log[] = 'factory ends';
                }
            }, new PoolOptions(size: 1, timeouts: new Timeouts(create: 0.0)));
            $borrower = async(static fn(): ?\Throwable => self::thrownBy($pool->borrow(...)));
            while (!$hasBegun) {
                delay(0.001);
            }
            timeout(60.0, $pool->close(...));
            $log[] = 'pool is closed';
            self::assertInstanceOf(PoolClosedException::class, $borrower->await());
            self::assertSame(0, $pool->stats()['total']);
        });
        self::assertSame(['factory ends', 'pool is closed'], $log);
    }

    public function testAResetThatHangsIsNamedByTheBorrowThatFailsAndByTheTaskList(): void
    {
        run(static function (): void {
            $ends = false;
            $reset = static function () use (&$ends): void {
                while (!$ends) {
                    delay(0.002);
                }
            };
            $pool = new Pool(static fn(): \stdClass => new \stdClass(), new PoolOptions(size: 1, timeouts: new Timeouts(borrow: 0.05, return: 3600.0), name: 'tools'), reset: $reset);
            $pool->with(static fn() => null);
            $thrown = self::thrownBy($pool->borrow(...));
            self::assertInstanceOf(PoolExhaustedException::class, $thrown);
            self::assertMatchesRegularExpression('/timed out after 50ms; the reset of resource #1 has run for \d+\.\d{3} s$/', $thrown->getMessage());
            self::assertSame(__FILE__, $thrown->getFile());
            self::assertContains('reset of resource #1 of pool "tools"', \array_column(tasks(), 'name'));
            $ends = true;
            $pool->close();
        });
    }

    public function testAResetThatTookTooLongIsReportedWithItsTimeout(): void
    {
        $warnings = [];
        \set_error_handler(static function (int $level, string $message) use (&$warnings): bool {
            $warnings[] = $message;

            return true;
        });
        try {
            run(static function () use (&$warnings): void {
                $pool = new Pool(static fn(): \stdClass => new \stdClass(), new PoolOptions(size: 1, timeouts: new Timeouts(return: 0.01), name: 'tools'), reset: static fn() => delay(3600.0));
                $pool->with(static fn() => null);
                while ($warnings === []) {
                    delay(0.002);
                }
                $pool->close();
            });
        } finally {
            \restore_error_handler();
        }
        self::assertStringContainsString('pool "tools": reset of resource #1 threw', $warnings[0]);
        self::assertStringContainsString('the reset took longer than timeouts.return; the resource is closed', $warnings[0]);
    }

    public function testAHookBeforeALoanThatHangsIsEndedAfterTheBorrowTimeout(): void
    {
        run(function (): void {
            $hangs = true;
            $borrowed = static function () use (&$hangs): void {
                delay($hangs ? 3600.0 : 0.0);
            };
            $close = function (\stdClass $resource): void {
                $this->closed[] = $resource->number;
            };
            $pool = new Pool(
                fn(): \stdClass => (object) ['number' => ++$this->made],
                new PoolOptions(size: 1, timeouts: new Timeouts(borrow: 0.2), name: 'tools'),
                close: $close,
                hooks: new Hooks(borrowed: $borrowed),
            );
            $thrown = self::thrownBy($pool->borrow(...));
            self::assertInstanceOf(ResourceNotReadyException::class, $thrown);
            self::assertSame('pool "tools": the hook "borrowed" of resource #1 took longer than timeouts.borrow, 0.2 s; the resource is closed', $thrown->getMessage());
            self::assertInstanceOf(TimeoutException::class, $thrown->getPrevious());
            $hangs = false;
            self::assertSame(2, self::number($pool));
            $pool->close();
            self::assertSame([1, 2], $this->closed);
        });
    }

    public function testATimeoutThatAHookSetsItselfIsItsOwnFailure(): void
    {
        run(static function (): void {
            $pool = new Pool(static fn(): \stdClass => new \stdClass(), new PoolOptions(size: 1), hooks: new Hooks(borrowed: static fn() => timeout(0.001, static fn() => delay(3600.0))));
            $thrown = self::thrownBy($pool->borrow(...));
            self::assertInstanceOf(TimeoutException::class, $thrown);
            self::assertSame(0.001, $thrown->seconds);
            $pool->close();
        });
    }

    /** More tasks than one turn of the loop starts: where all fibers are busy, tasks that are started after them have not begun when the run ends. */
    private static function queueTasks(): void
    {
        for ($i = 0; $i < 1_000; $i++) {
            detach(static fn() => null);
        }
    }

    private static function waitForTask(string $name): void
    {
        while (!\in_array($name, \array_column(tasks(), 'name'), true)) {
            yieldNow();
        }
    }

    /** Ends a run while the first factory hangs. */
    private static function cutOff(Pool $pool): void
    {
        run(static function () use ($pool): void {
            $borrower = async($pool->borrow(...));
            while ($pool->stats()['connecting'] === 0) {
                delay(0.001);
            }
            delay(0.005);
            $borrower->cancel();
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
