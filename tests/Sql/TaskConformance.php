<?php

declare(strict_types=1);

namespace Weft\Tests\Sql;

use Weft\Pool\PoolOptions;
use Weft\Pool\Timeouts;
use Weft\Runtime\CancelledException;
use Weft\Runtime\TimeoutException;
use Weft\Sql\Connection;
use Weft\Sql\SyntaxErrorException;
use Weft\Sql\Transaction;

use function Weft\async;
use function Weft\delay;
use function Weft\run;
use function Weft\timeout;

/** What tasks that share a database or a transaction can count on, for {@see SqlConformance}. */
trait TaskConformance
{
    public function testTasksShareADatabase(): void
    {
        $this->items();

        run(function (): void {
            $tasks = \array_map(fn (int $n) => async(fn () => $this->db->transaction(static function (Transaction $tx) use ($n): int {
                $tx->execute('INSERT INTO items (id, name) VALUES (?, ?)', [$n, "item $n"]);

                return $tx->execute('SELECT id FROM items WHERE name = ?', ["item $n"])->value();
            })), \range(1, 100));

            self::assertSame(\range(1, 100), \array_map(static fn ($task) => $task->await(), $tasks));
        });
        self::assertSame(100, $this->db->execute('SELECT count(*) FROM items')->value());
    }

    public function testACancelledTaskCancelsItsStatementAndTheConnectionIsUsedAgain(): void
    {
        $db = $this->connect(new PoolOptions(size: 1, timeouts: new Timeouts(borrow: 60.0)));
        $db->execute('SELECT 1');

        run(function () use ($db): void {
            $started = \hrtime(true);
            self::thrown(TimeoutException::class, fn () => timeout(0.1, fn () => $db->execute($this->endless())));
            self::assertSame(1, $db->execute('SELECT 1')->value());
            self::assertLessThan(20e9, \hrtime(true) - $started);
        });
        $db->close();
    }

    public function testATaskThatWasCancelledBeforeSendsNoStatement(): void
    {
        $this->items();

        run(function (): void {
            $insert = 'INSERT INTO items (id, name) VALUES (?, ?)';
            $tx = $this->db->begin();
            $tx->execute($insert, [1, 'deferred']);
            $works = [
                fn () => $this->db->execute($insert, [2, 'by itself']),
                static fn () => $tx->flush(),
                static fn () => $tx->commit(),
            ];
            foreach ($works as $work) {
                $task = null;
                $task = async(static function () use (&$task, $work): void {
                    $task->cancel();
                    $work();
                });
                self::thrown(CancelledException::class, static fn () => $task->await());
            }
            self::assertTrue($tx->isOpen());
            $tx->rollback();
        });
        self::assertSame(0, $this->db->execute('SELECT count(*) FROM items')->value());
    }

    public function testADestructorThatCannotWaitSendsNoStatement(): void
    {
        if (\PHP_VERSION_ID >= 80400) {
            self::markTestSkipped('destructors wait');
        }
        $this->items();

        run(function (): void {
            $object = new class ($this->db) {
                public function __construct(private readonly Connection $db)
                {
                }

                public function __destruct()
                {
                    $this->db->execute('INSERT INTO items (id, name) VALUES (?, ?)', [1, 'one']);
                }
            };
            self::thrown(\Error::class, static function () use (&$object): void {
                $object = null;
            });
        });
        self::assertSame(0, $this->db->execute('SELECT count(*) FROM items')->value());
    }

    public function testACancelledTransactionIsRolledBackAndTheConnectionIsUsedAgain(): void
    {
        $this->items();
        $db = $this->connect(new PoolOptions(size: 1, timeouts: new Timeouts(borrow: 60.0)));

        run(function () use ($db): void {
            self::thrown(TimeoutException::class, fn () => timeout(0.2, fn () => $db->transaction(function (Transaction $tx): void {
                $tx->execute('INSERT INTO items (id, name) VALUES (1, ?)', ['one'])->affected();
                $tx->execute($this->endless())->rows();
            })));
            self::thrown(TimeoutException::class, fn () => timeout(0.2, fn () => $db->transaction(static function (Transaction $tx): void {
                $tx->execute('INSERT INTO items (id, name) VALUES (2, ?)', ['two'])->affected();
                delay(300.0);
            })));
            self::assertSame(0, $db->execute('SELECT count(*) FROM items')->value());
        });
        $db->close();
    }

    public function testATaskCancelledInALoopOverAStreamEndsTheQuery(): void
    {
        $db = $this->connect(new PoolOptions(size: 1, timeouts: new Timeouts(borrow: 60.0)));

        run(function () use ($db): void {
            $task = async(function () use ($db): void {
                foreach ($db->stream($this->series(10_000_000), chunk: 1) as $_) {
                    delay(0.01);
                }
            });
            delay(0.1);
            $task->cancel();
            self::thrown(CancelledException::class, static fn () => $task->await());
            self::assertSame(1, $db->execute('SELECT 1')->value());
        });
        $db->close();
    }

    public function testTwoTasksOnOneTransactionTakeTurnsAndEachGetsItsOwnResults(): void
    {
        $tx = $this->db->begin();

        run(function () use ($tx): void {
            $tasks = [];
            foreach (\range(1, 8) as $n) {
                $tasks[] = async(function () use ($tx, $n): void {
                    foreach (\range(1, 10) as $round) {
                        self::assertSame("$n/$round", $tx->execute("SELECT CAST(? AS {$this->cast('TEXT')})", ["$n/$round"])->value());
                    }
                });
            }
            foreach ($tasks as $task) {
                $task->await();
            }
        });

        self::assertSame(1, $tx->execute('SELECT 1')->value());
        $tx->commit();
    }

    public function testTheSameCodeWorksWithADatabaseAndATransaction(): void
    {
        $this->items();
        $insert = static fn (Connection $to, int $id) => $to->transaction(static function (Connection $tx) use ($id): void {
            $tx->execute('INSERT INTO items (id, name) VALUES (?, ?)', [$id, "item $id"]);
        });

        $insert($this->db, 1);
        $this->db->transaction(static fn (Transaction $tx) => $insert($tx, 2));

        self::assertSame(['item 1', 'item 2'], $this->names());
    }

    public function testEverythingWorksInsideATaskAsOutside(): void
    {
        $this->items();

        run(function (): void {
            $this->db->transaction(static fn (Transaction $tx) => $tx->execute('INSERT INTO items (id, name) VALUES (1, ?)', ['one']));
            self::assertSame(['one'], $this->names());
            self::assertCount(2_500, \iterator_to_array($this->db->stream($this->series(2_500))));
            self::thrown(SyntaxErrorException::class, fn () => $this->db->execute('SELEC'));
        });
        self::assertSame(['one'], $this->names());
    }
}
