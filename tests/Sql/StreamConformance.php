<?php

declare(strict_types=1);

namespace Weft\Tests\Sql;

use Weft\Pool\PoolOptions;
use Weft\Pool\Timeouts;
use Weft\Sql\Transaction;
use Weft\Sql\UndefinedTableException;

/** What `stream()` promises, for {@see SqlConformance}. */
trait StreamConformance
{
    public function testAStreamYieldsEveryRowInOrderWithRunningKeys(): void
    {
        self::assertSame(\range(1, 2_500), \array_column(\iterator_to_array($this->db->stream($this->series(2_500), chunk: 1_000)), 'n'));
        self::assertSame([], \iterator_to_array($this->db->stream($this->series(0))));
        self::assertSame([['v' => 'x']], \iterator_to_array($this->db->stream("SELECT CAST(:v AS {$this->cast('TEXT')}) AS v", ['v' => 'x'])));
    }

    public function testAStreamNeedsLittleMemory(): void
    {
        $rows = 0;
        $before = $peak = self::residentBytes();
        foreach ($this->db->stream($this->series(300_000)) as $row) {
            if (++$rows % 10_000 === 0) {
                $peak = \max($peak, self::residentBytes());
            }
        }

        self::assertSame(300_000, $rows);
        self::assertLessThan(20 << 20, $peak - $before, 'bytes more than before');
    }

    public function testLeavingAStreamEarlyGivesItsConnectionBack(): void
    {
        $db = $this->connect(new PoolOptions(size: 1, timeouts: new Timeouts(borrow: 60.0)));
        foreach ([1, 2, 3] as $_) {
            foreach ($db->stream($this->series(10_000_000), chunk: 10) as $row) {
                if ($row['n'] === 15) {
                    break;
                }
            }
        }

        self::assertSame(1, $db->execute('SELECT 1')->value());
        $db->close();
    }

    public function testAnExceptionInTheLoopOverAStreamIsPassedOn(): void
    {
        $db = $this->connect(new PoolOptions(size: 1, timeouts: new Timeouts(borrow: 60.0)));
        self::thrown(\DomainException::class, function () use ($db): void {
            foreach ($db->stream($this->series(10_000_000)) as $_) {
                throw new \DomainException;
            }
        });

        self::assertSame(1, $db->execute('SELECT 1')->value());
        $db->close();
    }

    public function testAnErrorOfAStreamIsThrownByItsLoop(): void
    {
        $stream = $this->db->stream('SELECT * FROM nowhere');

        self::thrown(UndefinedTableException::class, static fn () => \iterator_to_array($stream));
        self::thrown(\ValueError::class, fn () => $this->db->stream('SELECT 1', chunk: 0));
    }

    public function testAStreamInATransactionSeesItsRowsAndLeavesItUsable(): void
    {
        $this->db->execute('CREATE TABLE t (a BIGINT)');

        $this->db->transaction(function (Transaction $tx): void {
            $tx->execute('INSERT INTO t VALUES (1), (2), (3)');
            $seen = [];
            foreach ($tx->stream('SELECT a FROM t WHERE a > ? ORDER BY a', [1], chunk: 1) as $row) {
                $tx->execute('INSERT INTO t VALUES (?)', [$row['a'] + 10]);
                $seen[] = $row['a'];
            }
            foreach ($tx->stream('SELECT a FROM t', chunk: 1) as $_) {
                break;
            }
            self::assertSame([2, 3], $seen);
        });

        self::assertSame([1, 2, 3, 12, 13], $this->db->execute('SELECT a FROM t ORDER BY a')->column());
    }

    public function testStreamsInATransactionMayEndInAnyOrder(): void
    {
        $this->db->transaction(function (Transaction $tx): void {
            $read = fn () => $tx->stream($this->series(5), chunk: 2);
            [$first, $second] = [$read(), $read()];
            [$first->current(), $second->current()];
            unset($first);
            $third = $read();
            self::assertSame(1, $third->current()['n']);
            $second->next();
            $second->next();
            self::assertSame([3, 5], [$second->current()['n'], \count(\iterator_to_array($third))]);
        });
    }

    public function testAStreamInATransactionOutlivesNestedOnesThatAreUndone(): void
    {
        $this->db->transaction(function (Transaction $tx): void {
            foreach ([1, 2] as $_) {
                $seen = [];
                foreach ($tx->stream($this->series(5), chunk: 2) as $row) {
                    $seen[] = $row['n'];
                    self::thrown(\DomainException::class, fn () => $tx->transaction(function (Transaction $tx): void {
                        $inner = $tx->stream($this->series(5), chunk: 2);
                        self::assertSame(1, $inner->current()['n']);
                        throw new \DomainException;
                    }));
                }
                self::assertSame([1, 2, 3, 4, 5], $seen);
            }
        });
    }

    public function testAStreamInATransactionMayEndInANestedOneThatIsUndone(): void
    {
        $this->db->transaction(function (Transaction $tx): void {
            $outer = $tx->stream($this->series(5), chunk: 2);
            self::assertSame(1, $outer->current()['n']);
            self::thrown(\DomainException::class, static fn () => $tx->transaction(static function () use (&$outer): void {
                $outer = null;
                throw new \DomainException;
            }));
            self::assertCount(5, \iterator_to_array($tx->stream($this->series(5), chunk: 2)));
            $kept = $tx->transaction(function (Transaction $tx): iterable {
                $kept = $tx->stream($this->series(5), chunk: 2);
                $kept->current();

                return $kept;
            });
            self::thrown(\DomainException::class, static fn () => $tx->transaction(static fn () => throw new \DomainException));
            self::assertCount(5, \iterator_to_array($kept, false));
        });
    }
}
