<?php

declare(strict_types=1);

namespace Weft\Tests\Sql;

use Weft\Pool\PoolOptions;
use Weft\Sql\Transaction;
use Weft\Sql\UndefinedTable;

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
        $db = $this->connect(new PoolOptions(size: 1, borrowTimeout: 10.0));
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
        $db = $this->connect(new PoolOptions(size: 1, borrowTimeout: 10.0));
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

        self::thrown(UndefinedTable::class, static fn () => \iterator_to_array($stream));
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
}
