<?php

declare(strict_types=1);

namespace Weft\Tests\Pool;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Pool\FactoryException;
use Weft\Pool\Leases;
use Weft\Pool\Lifetime;
use Weft\Pool\Pool;
use Weft\Pool\PoolOptions;
use Weft\Pool\Validation;
use Weft\Pool\ResourceNotReadyException;
use Weft\Pool\Timeouts;
use Weft\UsageError;
use Weft\Tests\Runtime\Subprocess;

use function Weft\delay;
use function Weft\run;
use function Weft\timeout;

/** What a pool is told that makes no sense. */
final class MisuseTest extends TestCase
{
    /** @dataProvider places */
    #[DataProvider('places')]
    public function testAnExceptionOfAFactoryThatIsNotUtf8IsToldAtOnce(\Closure $place): void
    {
        $place(static function (): void {
            $pool = new Pool(static fn () => throw new \DomainException("caf\xE9"), new PoolOptions(timeouts: new Timeouts(create: 5.0)));
            try {
                $pool->borrow();
                self::fail('lent nothing');
            } catch (FactoryException $failed) {
                self::assertStringEndsWith("caf\u{FFFD}", $failed->getMessage());
                self::assertSame("caf\xE9", $failed->getPrevious()?->getMessage());
            }
        });
    }

    /** @dataProvider places */
    #[DataProvider('places')]
    public function testAFactoryThatReturnsWhatThePoolHasAlreadyIsRefused(\Closure $place): void
    {
        $place(static function (): void {
            $only = new \stdClass();
            $pool = new Pool(static fn (): \stdClass => $only, new PoolOptions(size: 2, timeouts: new Timeouts(borrow: 0.5), name: 'tools'));
            $first = $pool->borrow();
            try {
                $pool->borrow();
                self::fail('lent twice');
            } catch (ResourceNotReadyException $failed) {
                self::assertStringEndsWith('; last failure: pool "tools": the factory returned a stdClass that is in the pool already; it must create a new one for each call', $failed->getMessage());
                self::assertInstanceOf(FactoryException::class, $failed->getPrevious());
            }
            $pool->return($first);
            self::assertSame($only, $pool->borrow()->resource());
        });
    }

    /** @dataProvider places */
    #[DataProvider('places')]
    public function testTimesBeyondEveryClockAreForEver(\Closure $place): void
    {
        foreach ([1e300, 1.8446744073709552e19, 1e15] as $time) {
            $place(static function () use ($time): void {
                foreach ([[$time, $time, $time], [0.001, $time, $time], [$time, 0.01, 0.001]] as [$max, $keepalive, $after]) {
                    foreach ([0.0, 1.0] as $jitter) {
                        $options = new PoolOptions(
                            size: 1,
                            minimumIdle: 1,
                            timeouts: new Timeouts($time, $time, $time),
                            lifetime: new Lifetime($max, $jitter, $time, $time),
                            validation: new Validation($after, $keepalive, $time),
                            leases: new Leases($time),
                        );
                        $pool = new Pool(static fn (): \stdClass => new \stdClass(), $options, check: static fn (): bool => true, reset: static fn (): bool => true);
                        foreach ([1, 2, 3] as $_) {
                            $pool->with(static fn () => \usleep(2_000));
                        }
                        self::assertSame(3, $pool->stats()['borrowed']);
                        $pool->close();
                    }
                }
            });
        }
    }

    public function testALeaseIsNotCopied(): void
    {
        $pool = new Pool(static fn (): \stdClass => new \stdClass(), new PoolOptions(size: 1));
        $lease = $pool->borrow();
        try {
            $copy = clone $lease;
            self::fail('copied');
        } catch (\Error $refused) {
            // Before PHP 8.5 the message calls it a private method without the word.
            self::assertMatchesRegularExpression('/private (method )?Weft.Pool.Lease::__clone\(\)/', $refused->getMessage());
        }
        self::assertSame(1, $pool->stats()['in_use']);
        $pool->return($lease);
    }

    public function testANameThatIsNotUtf8IsRefused(): void
    {
        $this->expectException(UsageError::class);
        $this->expectExceptionMessage('the name of the pool is not UTF-8: byte 0xE9 at offset 3');
        new Pool(static fn (): \stdClass => new \stdClass(), new PoolOptions(name: "caf\xE9"));
    }

    public function testClosingWaitsForWhatClosesItsResources(): void
    {
        run(static function (): void {
            $closed = 0;
            $pool = new Pool(static fn (): \stdClass => new \stdClass(), new PoolOptions(size: 3), close: static function () use (&$closed): void {
                delay(0.02);
                ++$closed;
            });
            $leases = [$pool->borrow(), $pool->borrow(), $pool->borrow()];
            $pool->discard($leases[0]);
            \array_map($pool->return(...), [$leases[1], $leases[2]]);
            $pool->close();
            self::assertSame(3, $closed);
        });
    }

    public function testAForkedChildIsLentNothingOfItsParent(): void
    {
        if (!\function_exists('pcntl_fork')) {
            self::markTestSkipped('pcntl is not there');
        }
        $program = Subprocess::run(<<<'PHP'
            $pool = new Weft\Pool\Pool(static fn (): stdClass => new stdClass(), new Weft\Pool\PoolOptions(size: 1));
            $pool->return($pool->borrow());
            $child = pcntl_fork();
            if ($child === 0) {
                try { $pool->borrow(); echo "lent\n"; } catch (Weft\Runtime\ForkedProcessError $e) { echo "refused\n"; }
                exit(0);
            }
            pcntl_waitpid($child, $status);
            $pool->return($pool->borrow());
            echo "parent goes on\n";
            PHP);

        self::assertSame("refused\nparent goes on\n", $program->output . $program->errors);
    }

    /** @return iterable<string, array{\Closure}> */
    public static function places(): iterable
    {
        yield 'outside of tasks' => [static fn (\Closure $test) => $test()];
        yield 'in a task' => [static fn (\Closure $test) => run(static fn () => timeout(60.0, $test))];
    }
}
