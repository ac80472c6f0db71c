<?php

declare(strict_types=1);

namespace Weft\Tests\Sql;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Sql\Transaction;
use Weft\UsageError;

use function Weft\async;
use function Weft\current;
use function Weft\run;
use function Weft\timeout;

/** What a transaction promises, for {@see SqlConformance}. */
trait TransactionConformance
{
    public function testATransactionCommitsWhenItsClosureReturnsAndPassesTheValueOn(): void
    {
        $this->items();

        $returned = $this->db->transaction(function (Transaction $tx): string {
            $tx->execute('INSERT INTO items (id, name) VALUES (?, ?)', [1, 'one']);

            return 'done';
        });

        self::assertSame('done', $returned);
        self::assertSame(['one'], $this->names());
    }

    public function testATransactionRollsBackWhenItsClosureThrowsAndPassesTheExceptionOn(): void
    {
        $this->items();
        $thrown = new \DomainException('no');

        $caught = self::thrown(\DomainException::class, fn () => $this->db->transaction(function (Transaction $tx) use ($thrown): void {
            $tx->execute('INSERT INTO items (id, name) VALUES (?, ?)', [1, 'one'])->affected();
            throw $thrown;
        }));

        self::assertSame($thrown, $caught);
        self::assertSame([], $this->names());
    }

    public function testAWriteOnTheDatabaseInATransactionIsNotPartOfItAndItsLineIsNamedOnce(): void
    {
        $this->items();
        $line = __LINE__ + 4;
        $lines = self::logged(function (): void {
            foreach ([1, 2] as $id) {
                self::thrown(\DomainException::class, fn () => $this->db->transaction(function () use ($id): void {
                    $this->db->execute('INSERT INTO items (id, name) VALUES (?, ?)', [$id, "item $id"]);
                    throw new \DomainException();
                }));
            }
        });

        self::assertSame(['item 1', 'item 2'], $this->names());
        self::assertCount(1, $lines);
        self::assertStringContainsString('the statement at ' . __FILE__ . ":$line is not part of the transaction around it", $lines[0]);
    }

    public function testAWriteBehindACommentIsNamedToo(): void
    {
        $this->items();
        $lines = self::logged(fn () => $this->db->transaction(function (): void {
            $this->db->execute("/* first */ INSERT INTO items (id, name) VALUES (1, 'one')");
            $this->db->execute("-- second\nUPDATE items SET name = 'two'");
            $this->db->execute('/* INSERT */ SELECT name FROM items');
        }));

        self::assertCount(2, $lines);
    }

    public function testATransactionWithinTheClosureOfAnotherOfTheSameDatabaseIsNamed(): void
    {
        $line = __LINE__ + 1;
        $lines = self::logged(fn (): mixed => $this->db->transaction(fn (): mixed => $this->db->transaction(static fn (): int => 7)));

        self::assertCount(1, $lines);
        self::assertStringContainsString('the transaction at ' . __FILE__ . ":$line is not part of the transaction around it", $lines[0]);
    }

    public function testAStatementThatReadsOneOfAnotherTaskAndOneBehindTheTransactionAreNotNamed(): void
    {
        $this->items();
        $insert = 'INSERT INTO items (id, name) VALUES (?, ?)';
        $work = function () use ($insert): void {
            $this->db->transaction(function () use ($insert): void {
                $this->db->execute('SELECT name FROM items');
                async(fn () => $this->db->execute($insert, [1, 'one']))->await();
            });
            $this->db->execute($insert, [2, 'two']);
        };

        self::assertSame([], self::logged(static fn (): mixed => current() === null ? run($work) : $work()));
        self::assertSame(['one', 'two'], $this->names());
    }

    /** @return list<string> */
    private static function logged(\Closure $work): array
    {
        $log = (string) \tempnam(\sys_get_temp_dir(), 'weft-log');
        $before = \ini_set('error_log', $log);
        try {
            $work();

            return \file($log, \FILE_IGNORE_NEW_LINES) ?: [];
        } finally {
            \ini_set('error_log', (string) $before);
            \unlink($log);
        }
    }

    public function testATransactionSeesItsOwnRowsAndNobodyElseDoesBeforeTheCommit(): void
    {
        $this->items();
        $tx = $this->db->begin();
        $tx->execute('INSERT INTO items (id, name) VALUES (?, ?)', [1, 'one']);

        self::assertSame(['one'], $tx->execute('SELECT name FROM items')->column());
        self::assertSame([], $this->names());
        $tx->commit();

        self::assertSame(['one'], $this->names());
    }

    public function testResultsCanBeReadInAnyOrderAndMoreThanOnce(): void
    {
        $this->db->transaction(function (Transaction $tx): void {
            $results = \array_map(fn (int $n): mixed => $tx->execute("SELECT CAST(? AS {$this->cast('BIGINT')}) AS n", [$n]), \range(0, 9));

            self::assertSame(7, $results[7]->value());
            self::assertSame(3, $results[3]->value());
            self::assertSame(7, $results[7]->value());
            self::assertSame([['n' => 9]], $results[9]->rows());
        });
    }

    public function testAResultCanBeReadAfterTheCommit(): void
    {
        $result = $this->db->transaction(static fn (Transaction $tx) => $tx->execute('SELECT 5'));

        self::assertSame(5, $result->value());
    }

    public function testAResultThatWasNeverAskedForIsGoneAfterARollback(): void
    {
        $tx = $this->db->begin();
        $read = $tx->execute('SELECT 4');
        self::assertSame(4, $read->value());
        $unread = $tx->execute('SELECT 5');

        $tx->rollback();

        self::assertSame(4, $read->value());
        self::thrown(UsageError::class, fn () => $unread->value());
        self::thrown(UsageError::class, fn () => $unread->value());
    }

    public function testDeferredStatementsAreNeverSentAfterARollback(): void
    {
        $this->items();
        $tx = $this->db->begin();
        $tx->execute('INSERT INTO items (id, name) VALUES (1, ?)', ['one']);
        $tx->rollback();

        self::assertSame([], $this->names());
        self::assertFalse($tx->isOpen());
    }

    /** @return iterable<string, array{callable(Transaction): mixed}> */
    public static function endings(): iterable
    {
        yield 'commit' => [static fn (Transaction $tx) => $tx->commit()];
        yield 'rollback' => [static fn (Transaction $tx) => $tx->rollback()];
    }

    /** @dataProvider endings */
    #[DataProvider('endings')]
    public function testATransactionCannotBeUsedAfterItsEnd(callable $end): void
    {
        $tx = $this->db->begin();
        self::assertSame(1, $tx->execute('SELECT 1')->value());
        self::assertTrue($tx->isOpen());
        $end($tx);

        self::assertFalse($tx->isOpen());
        $uses = [
            static fn () => $tx->execute('SELECT 1'),
            static fn () => $tx->flush(),
            static fn () => $tx->commit(),
            static fn () => $tx->transaction(static fn () => 1),
            static fn () => \iterator_to_array($tx->stream('SELECT 1')),
        ];
        foreach ($uses as $use) {
            $error = self::thrown(UsageError::class, $use);
            self::assertStringContainsString('transaction', $error->getMessage());
        }
        $tx->rollback();
    }

    public function testAnEmptyTransactionCommits(): void
    {
        self::assertSame('x', $this->db->transaction(static fn () => 'x'));
    }

    public function testATransactionThatTheClosureEndedItselfStaysEnded(): void
    {
        $this->items();

        $this->db->transaction(function (Transaction $tx): void {
            $tx->execute('INSERT INTO items (id, name) VALUES (1, ?)', ['one']);
            $tx->commit();
        });
        $this->db->transaction(function (Transaction $tx): void {
            $tx->execute('INSERT INTO items (id, name) VALUES (2, ?)', ['two']);
            $tx->rollback();
        });

        self::assertSame(['one'], $this->names());
    }

    public function testATransactionThatIsDroppedIsRolledBack(): void
    {
        $this->items();
        $tx = $this->db->begin();
        $tx->execute('INSERT INTO items (id, name) VALUES (1, ?)', ['one'])->affected();
        unset($tx);

        $this->db->execute('INSERT INTO items (id, name) VALUES (2, ?)', ['two']);
        self::assertSame(['two'], $this->names());
    }

    public function testThousandsOfDeferredStatementsTakeEffectInOrder(): void
    {
        $this->db->execute('CREATE TABLE t (a BIGINT)');

        $this->db->transaction(static function (Transaction $tx): void {
            foreach (\range(1, 5_000) as $n) {
                $tx->execute('INSERT INTO t VALUES (?)', [$n]);
            }
        });

        self::assertSame(\range(1, 5_000), $this->db->execute('SELECT a FROM t')->column());
    }

    public function testLargeParametersAndLargeResultsInOneBatchDoNotBlockEachOther(): void
    {
        timeout(self::DEADLINE, fn () => $this->db->transaction(function (Transaction $tx): void {
            $text = \str_repeat('x', 1_000_000);
            $results = \array_map(fn () => $tx->execute("SELECT CAST(? AS {$this->cast('TEXT')})", [$text]), \range(1, 20));
            foreach ($results as $result) {
                self::assertSame(1_000_000, \strlen($result->value()));
            }
        }));
    }
}
