<?php

declare(strict_types=1);

namespace Weft\Tests\Pool;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Pool\Lease;
use Weft\Pool\Pool;
use Weft\Pool\PoolOptions;
use Weft\Runtime\CancelledException;
use Weft\Runtime\Channel;

use function Weft\all;
use function Weft\async;
use function Weft\delay;
use function Weft\run;
use function Weft\timeout;
use function Weft\yieldNow;

/** Nobody starves: counted in turns, not in time. */
final class FairnessTest extends TestCase
{
    private const BORROWERS = 64;
    private const SIZE = 4;

    private int $asked = 0;
    /** @var list<int> numbers of the borrows in the order in which they were served */
    private array $served = [];
    private int $longest = 0;

    /** @dataProvider works */
    #[DataProvider('works')]
    public function testEachOfManyBorrowersHasItsTurnAfterThoseWhoAskedBeforeAndNobodyElse(\Closure $work): void
    {
        run(function () use ($work): void {
            $pool = new Pool(static fn (): object => new \stdClass(), new PoolOptions(size: self::SIZE));
            all(\array_fill(0, self::BORROWERS, function () use ($pool, $work): void {
                for ($turn = 0; $turn < 50; ++$turn) {
                    $lease = $this->borrow($pool);
                    $work();
                    $pool->return($lease);
                }
            }));
            $pool->close();
        });

        $served = $this->served;
        \sort($served);
        self::assertSame(\range(1, 50 * self::BORROWERS), $served);
        foreach ($this->served as $place => $number) {
            // Those to whom one turn of the loop gives something may begin in any order.
            self::assertLessThan(self::SIZE, \abs($place + 1 - $number), "borrow {$number} was served as number " . ($place + 1));
        }
        self::assertLessThan(self::BORROWERS + self::SIZE, $this->longest, 'hand-offs to others that a borrower has waited for');
    }

    /** @return iterable<string, array{\Closure(): void}> what borrowers do with what they have */
    public static function works(): iterable
    {
        yield 'nothing but letting others go on' => [yieldNow(...)];
        yield 'something of the same length' => [static fn () => delay(0.0005)];
    }

    public function testWhoGetsAReturnedResourceGoesOnBeforeTheOthersThatAreReady(): void
    {
        $order = [];
        run(static function () use (&$order): void {
            $pool = new Pool(static fn (): object => new \stdClass(), new PoolOptions(size: 1));
            $gate = new Channel(3);
            $holder = async(static function () use ($pool, $gate, &$order): void {
                $pool->with($gate->receive(...));
                $order[] = 'holder';
            });
            yieldNow();
            foreach (['first', 'second'] as $name) {
                async(static function () use ($pool, $name, &$order): void {
                    $pool->with(static function () use ($name, &$order): void {
                        $order[] = $name;
                    });
                });
            }
            foreach (['ready', 'also ready'] as $name) {
                async(static function () use ($gate, $name, &$order): void {
                    $gate->receive();
                    $order[] = $name;
                });
            }
            yieldNow();
            self::assertSame(2, $pool->stats()['waiting']);
            foreach (\range(1, 3) as $_) {
                $gate->send(null);
            }
            $holder->await();
        });

        // The first one hands over to nobody: otherwise borrowers that do not wait would hold up all others.
        self::assertSame(['holder', 'first', 'ready', 'also ready', 'second'], $order);
    }

    public function testATaskThatIsCancelledWhenItWasHandedAResourceGivesItBack(): void
    {
        run(static function (): void {
            $pool = new Pool(static fn (): object => new \stdClass(), new PoolOptions(size: 1));
            $lease = $pool->borrow();
            $waiter = async(static fn () => $pool->with(static fn () => delay(60)));
            yieldNow();

            $pool->return($lease);
            $waiter->cancel();

            try {
                $waiter->await();
                self::fail('it was cancelled');
            } catch (CancelledException) {
            }
            self::assertSame(0, $pool->stats()['in_use']);
            timeout(60.0, static fn () => $pool->with(static fn () => null));
        });
    }

    public function testAWaiterIsNeitherOvertakenByLaterOnesNorDelayedByOnesThatLeave(): void
    {
        run(function (): void {
            $pool = new Pool(static fn (): object => new \stdClass(), new PoolOptions(size: self::SIZE));
            $held = \array_map(static fn (): Lease => $pool->borrow(), \range(1, self::SIZE));
            $waiting = [];
            foreach (\range(1, self::BORROWERS) as $number) {
                $waiting[$number] = async(function () use ($pool): void {
                    $lease = $this->borrow($pool);
                    yieldNow();
                    $pool->return($lease);
                });
            }
            yieldNow();
            foreach (\range(1, self::BORROWERS, 2) as $leaving) {
                $waiting[$leaving]->cancel();
            }
            \array_map($pool->return(...), $held);
            $late = $this->borrow($pool);
            foreach (\range(2, self::BORROWERS, 2) as $staying) {
                timeout(60.0, $waiting[$staying]->await(...));
            }
            $pool->return($late);
        });

        self::assertSame([...\range(2, self::BORROWERS, 2), self::BORROWERS + 1], $this->served);
    }

    private function borrow(Pool $pool): Lease
    {
        $number = ++$this->asked;
        $before = \count($this->served);
        $lease = $pool->borrow();
        $this->longest = \max($this->longest, \count($this->served) - $before);
        $this->served[] = $number;

        return $lease;
    }
}
