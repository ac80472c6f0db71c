<?php

declare(strict_types=1);

namespace Weft\Tests\Sql;

use Weft\Sql\NotNullViolationException;
use Weft\Sql\SqlException;
use Weft\Sql\Transaction;
use Weft\Sql\UndefinedTableException;
use Weft\Sql\UniqueViolationException;
use Weft\UsageError;

/** When errors of deferred statements surface, and what a nested transaction undoes, for {@see SqlConformance}. */
trait DeferredConformance
{
    public function testADeferredErrorIsThrownByTheFirstCallThatNeedsAnAnswerAndNamesItsStatement(): void
    {
        $this->items();
        $tx = $this->db->begin();
        $tx->execute('INSERT INTO items (id, name) VALUES (1, ?)', ['one']);
        $failing = $tx->execute('INSERT INTO items (id, name) VALUES (2, ?)', ['one']);
        $after = $tx->execute('SELECT count(*) FROM items');

        $error = self::thrown(UniqueViolationException::class, fn () => $after->value());
        self::assertSame('INSERT INTO items (id, name) VALUES (2, ?)', $error->statement);
        self::thrown(SqlException::class, fn () => $failing->affected());
        self::thrown(SqlException::class, fn () => $tx->commit());
        $tx->rollback();

        self::assertSame([], $this->names());
    }

    public function testADeferredErrorIsThrownByTheCommitAtTheLatest(): void
    {
        $this->items();

        $error = self::thrown(NotNullViolationException::class, fn () => $this->db->transaction(static function (Transaction $tx): void {
            $tx->execute('INSERT INTO items (id, name) VALUES (1, ?)', ['one']);
            $tx->execute('INSERT INTO items (id, name) VALUES (2, NULL)');
        }));

        self::assertSame('INSERT INTO items (id, name) VALUES (2, NULL)', $error->statement);
        self::assertSame([], $this->names());
    }

    public function testAFailureAtTheCommitNamesTheLineItsStatementWasGivenAt(): void
    {
        $this->items();

        $error = self::thrown(NotNullViolationException::class, fn () => $this->db->transaction(static function (Transaction $tx): void {
            $tx->execute('INSERT INTO items (id, name) VALUES (1, ?)', ['one']);
            $tx->execute('INSERT INTO items (id, name) VALUES (2, NULL)');
            $tx->execute('INSERT INTO items (id, name) VALUES (3, ?)', ['three']);
        }));

        $place = __FILE__ . ':' . (__LINE__ - 4);
        self::assertSame($place, $error->givenAt);
        self::assertStringEndsWith("[given at $place]", $error->getMessage());
    }

    public function testEveryCallThatReportsADeferredFailureNamesTheSameLine(): void
    {
        $this->items();
        $tx = $this->db->begin();
        $tx->execute('INSERT INTO items (id, name) VALUES (1, ?)', ['one']);
        $tx->flush();
        $tx->execute('SELECT 1');
        $failing = $tx->execute('INSERT INTO items (id, name) VALUES (2, ?)', ['one']);
        $place = __FILE__ . ':' . (__LINE__ - 1);
        $after = $tx->execute('SELECT count(*) FROM items');

        foreach ([$after->value(...), $failing->affected(...), $tx->commit(...)] as $call) {
            $error = self::thrown(SqlException::class, $call);
            $error instanceof UniqueViolationException && self::assertSame($place, $error->givenAt);
        }
        self::assertNotNull(self::thrown(SqlException::class, fn () => $this->db->transaction(static fn (Transaction $tx) => $tx->execute('SELEC')))->givenAt);
    }

    public function testAFailureAfterAnUndoneOneNamesItsOwnLine(): void
    {
        $this->items();
        $tx = $this->db->begin();
        self::thrown(NotNullViolationException::class, static fn () => $tx->transaction(static function (Transaction $tx): void {
            $tx->execute('INSERT INTO items (id, name) VALUES (1, NULL)');
        }));
        for ($id = 1; $id <= 1_500; $id++) {
            $tx->execute('INSERT INTO items (id, name) VALUES (?, ?)', [$id, "name $id"]);
        }
        $tx->execute('INSERT INTO items (id, name) VALUES (1501, NULL)');

        $error = self::thrown(NotNullViolationException::class, $tx->commit(...));

        self::assertSame(__FILE__ . ':' . (__LINE__ - 4), $error->givenAt);
    }

    public function testAnItemOfABatchIsNamedByItsNumberAlone(): void
    {
        $this->items();
        $tx = $this->db->begin();
        $tx->execute('INSERT INTO items (id, name) VALUES (1, ?)', ['one']);

        $error = self::thrown(NotNullViolationException::class, static fn () => $tx->executeMany('INSERT INTO items (id, name) VALUES (?, ?)', [[2, 'two'], [3, null]]));
        $tx->rollback();

        self::assertSame([1, null], [$error->item, $error->givenAt]);
    }

    public function testAStatementThatIsAnsweredAtOnceHasNoOtherLine(): void
    {
        $this->items();

        self::assertNull(self::thrown(NotNullViolationException::class, fn () => $this->db->execute('INSERT INTO items (id, name) VALUES (2, NULL)'))->givenAt);
    }

    public function testStatementsExecutedBeforeAFailingOneKeepTheirResults(): void
    {
        $this->items();
        $this->db->execute('INSERT INTO items (id, name) VALUES (1, ?)', ['one']);
        $tx = $this->db->begin();
        $before = $tx->execute('SELECT name FROM items');
        $failing = $tx->execute('INSERT INTO items (id, name) VALUES (2, ?)', ['one']);

        self::thrown(UniqueViolationException::class, fn () => $failing->affected());
        self::assertSame('one', $before->value());
        $tx->rollback();
    }

    public function testACaughtErrorOfAStatementDoesNotLetTheClosureCommit(): void
    {
        $this->items();

        self::thrown(SqlException::class, fn () => $this->db->transaction(static function (Transaction $tx): void {
            $tx->execute('INSERT INTO items (id, name) VALUES (1, ?)', ['one']);
            try {
                $tx->execute('SELECT * FROM nowhere')->rows();
            } catch (UndefinedTableException) {
            }
        }));

        self::assertSame([], $this->names());
    }

    public function testAnErrorInANestedTransactionLeavesTheOuterOneUsable(): void
    {
        $this->items();

        $this->db->transaction(function (Transaction $tx): void {
            $tx->execute('INSERT INTO items (id, name) VALUES (1, ?)', ['outer']);
            self::thrown(UniqueViolationException::class, fn () => $tx->transaction(static function (Transaction $inner): void {
                $inner->execute('INSERT INTO items (id, name) VALUES (2, ?)', ['inner']);
                $inner->execute('INSERT INTO items (id, name) VALUES (3, ?)', ['outer']);
            }));
            $tx->execute('INSERT INTO items (id, name) VALUES (4, ?)', ['after']);
        });

        self::assertSame(['after', 'outer'], $this->names());
    }

    public function testAnExceptionInANestedTransactionUndoesItAndNeverSendsWhatItDeferred(): void
    {
        $this->items();

        $this->db->transaction(function (Transaction $tx): void {
            $tx->execute('INSERT INTO items (id, name) VALUES (1, ?)', ['outer']);
            $lost = null;
            $work = static function (Transaction $inner) use (&$lost): void {
                $inner->execute('INSERT INTO items (id, name) VALUES (2, ?)', ['sent'])->affected();
                $lost = $inner->execute('INSERT INTO items (id, name) VALUES (3, ?)', ['outer']);
                throw new \DomainException;
            };
            self::thrown(\DomainException::class, static fn () => $tx->transaction($work));
            self::thrown(UsageError::class, fn () => $lost->affected());
        });

        self::assertSame(['outer'], $this->names());
    }

    public function testTransactionsNestAsDeepAsOneLikes(): void
    {
        $this->items();
        $nest = function (Transaction $tx, int $depth) use (&$nest): void {
            $tx->execute('INSERT INTO items (id, name) VALUES (?, ?)', [$depth, "level $depth"]);
            if ($depth < 10) {
                try {
                    $tx->transaction(static fn (Transaction $inner) => $nest($inner, $depth + 1));
                } catch (\DomainException) {
                }
            }
            if ($depth === 7) {
                throw new \DomainException;
            }
        };

        $this->db->transaction(static fn (Transaction $tx) => $nest($tx, 1));

        self::assertSame(['level 1', 'level 2', 'level 3', 'level 4', 'level 5', 'level 6'], $this->names());
    }

    public function testANestedTransactionCannotEndTheOuterOne(): void
    {
        $this->items();

        $this->db->transaction(function (Transaction $tx): void {
            $tx->execute('INSERT INTO items (id, name) VALUES (1, ?)', ['one']);
            self::thrown(UsageError::class, static fn () => $tx->transaction(static fn (Transaction $inner) => $inner->commit()));
            self::thrown(UsageError::class, static fn () => $tx->transaction(static fn (Transaction $inner) => $inner->rollback()));
        });

        self::assertSame(['one'], $this->names());
    }

    public function testANestedTransactionReturnsWhatItsClosureReturnsAndItsRowsStay(): void
    {
        $this->items();

        $returned = $this->db->transaction(fn (Transaction $tx) => $tx->transaction(
            fn (Transaction $inner) => $inner->execute('INSERT INTO items (id, name) VALUES (1, ?)', ['one'])->affected(),
        ));

        self::assertSame(1, $returned);
        self::assertSame(['one'], $this->names());
    }

    public function testAnErrorDeferredBeforeANestedTransactionIsNotTheNestedOneS(): void
    {
        $this->items();
        $started = false;

        self::thrown(UndefinedTableException::class, fn () => $this->db->transaction(static function (Transaction $tx) use (&$started): void {
            $tx->execute('INSERT INTO nowhere VALUES (1)');
            $tx->transaction(static function () use (&$started): void {
                $started = true;
            });
        }));

        self::assertFalse($started);
    }
}
