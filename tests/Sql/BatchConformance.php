<?php

declare(strict_types=1);

namespace Weft\Tests\Sql;

use Weft\Runtime\TimeoutException;
use Weft\Sql\Connection;
use Weft\Sql\NotNullViolationException;
use Weft\Sql\InvalidParameterException;
use Weft\Sql\SyntaxErrorException;
use Weft\Sql\Transaction;
use Weft\Sql\UndefinedTableException;
use Weft\Sql\UniqueViolationException;
use Weft\UsageError;

use function Weft\delay;
use function Weft\run;
use function Weft\timeout;

/** What `executeMany()` promises, for {@see SqlConformance}. */
trait BatchConformance
{
    public function testABatchRunsOnceForEachItemAndTellsWhatEachHasAffected(): void
    {
        $this->items();

        $inserted = $this->db->executeMany('INSERT INTO items (id, name) VALUES (?, ?)', [[1, 'one'], [2, 'two'], [3, 'three']]);
        $updated = $this->db->executeMany('UPDATE items SET price = :price WHERE id <= :id', [['id' => 2, 'price' => 5], ['price' => 6, 'id' => 9], ['id' => 0, 'price' => 7]]);

        self::assertSame([1, 1, 1], $inserted);
        self::assertSame([2, 3, 0], $updated);
        self::assertSame(['one', 'three', 'two'], $this->names());
        self::assertSame([], $this->db->executeMany('DELETE FROM items', []));
        self::assertCount(3, $this->names());
    }

    public function testABatchOfAnyLengthTakesItsItemsAsItNeedsThemAndKeepsTheirOrder(): void
    {
        $this->db->execute('CREATE TABLE numbers (n BIGINT)');
        $items = static function (): iterable {
            for ($n = 0; $n < 25_000; $n++) {
                yield "key {$n}" => [$n];
            }
        };

        $affected = $this->db->executeMany('INSERT INTO numbers VALUES (?)', $items());

        self::assertSame(\array_fill(0, 25_000, 1), $affected);
        self::assertSame([25_000, 312_487_500], \array_map(\intval(...), \array_values($this->db->execute('SELECT count(*) AS c, sum(n) AS s FROM numbers')->first() ?? [])));
    }

    public function testTheItemThatFailsIsNamedAndNothingOfItsBatchTakesEffect(): void
    {
        $this->items();
        foreach ([0, 1, 999, 1_000, 2_345] as $wrong) {
            $items = static function () use ($wrong): iterable {
                for ($n = 0; $n < 3_000; $n++) {
                    yield [$n, $n === $wrong ? null : "name {$n}"];
                }
            };

            $error = self::thrown(NotNullViolationException::class, fn () => $this->db->executeMany('INSERT INTO items (id, name) VALUES (?, ?)', $items()));

            self::assertSame($wrong, $error->item);
            self::assertStringStartsWith("item {$wrong}: ", $error->getMessage());
            self::assertSame([], $this->names());
        }
    }

    public function testAnItemWhoseParametersDoNotFitIsNamed(): void
    {
        $this->items();
        foreach ([[2], [2, 'two', 3], ['id' => 2], [2, \STDIN]] as $wrong) {
            $error = self::thrown(InvalidParameterException::class, fn () => $this->db->executeMany('INSERT INTO items (id, name) VALUES (?, ?)', [[1, 'one'], $wrong]));
            self::assertSame(1, $error->item);
            self::assertStringStartsWith('item 1: ', $error->getMessage());
        }
        self::assertSame([], $this->names());
    }

    public function testABatchWithAWrongStatementSaysWhatIsWrongWithIt(): void
    {
        self::thrown(SyntaxErrorException::class, fn () => $this->db->executeMany('INSRT INTO items VALUES (?)', [[1]]));
        self::thrown(UndefinedTableException::class, fn () => $this->db->executeMany('INSERT INTO missing VALUES (?)', [[1]]));
        self::thrown(UsageError::class, fn () => $this->db->executeMany('COMMIT', [[]]));
    }

    public function testAnExceptionOfTheItemsIsPassedOnAndNothingTakesEffect(): void
    {
        $this->items();
        $items = static function (): iterable {
            for ($n = 0; $n < 1_500; $n++) {
                yield [$n, "name {$n}"];
            }
            throw new \DomainException('no more');
        };

        $error = self::thrown(\DomainException::class, fn () => $this->db->executeMany('INSERT INTO items (id, name) VALUES (?, ?)', $items()));

        self::assertSame('no more', $error->getMessage());
        self::assertSame([], $this->names());
    }

    public function testABatchInATransactionBelongsToIt(): void
    {
        $this->items();

        $this->db->transaction(function (Transaction $tx): void {
            $tx->execute('INSERT INTO items (id, name) VALUES (?, ?)', [1, 'one']);
            self::assertSame([1, 1], $tx->executeMany('INSERT INTO items (id, name) VALUES (?, ?)', [[2, 'two'], [3, 'three']]));
            $error = self::thrown(UniqueViolationException::class, static fn () => $tx->transaction(
                static fn (Connection $inner) => $inner->executeMany('INSERT INTO items (id, name) VALUES (?, ?)', [[4, 'four'], [3, 'again']]),
            ));
            self::assertSame(1, $error->item);
            self::assertSame(3, (int) $tx->execute('SELECT count(*) FROM items')->value());
        });

        self::assertSame(['one', 'three', 'two'], $this->names());
    }

    public function testAnErrorDeferredBeforeABatchIsNotAnItems(): void
    {
        $this->items();

        $error = self::thrown(UniqueViolationException::class, fn () => $this->db->transaction(static function (Transaction $tx): void {
            $tx->execute("INSERT INTO items (id, name) VALUES (1, 'one')");
            $tx->execute("INSERT INTO items (id, name) VALUES (1, 'one')");
            $tx->executeMany('INSERT INTO items (id, name) VALUES (?, ?)', [[2, 'two']]);
        }));

        self::assertNull($error->item);
    }

    public function testTheItemsMayComeFromTheSameTransaction(): void
    {
        $this->items();
        $this->db->executeMany('INSERT INTO items (id, name) VALUES (?, ?)', \array_map(static fn (int $n): array => [$n, "name {$n}"], \range(1, 1_500)));

        $affected = $this->db->transaction(static function (Transaction $tx): array {
            $items = static function () use ($tx): iterable {
                foreach ($tx->stream('SELECT id FROM items ORDER BY id', chunk: 400) as $row) {
                    if ($row['id'] % 100 === 0) {
                        $tx->execute('UPDATE items SET price = 1 WHERE id = ?', [$row['id']]);
                    }
                    yield [$row['id']];
                }
            };

            return $tx->executeMany('UPDATE items SET price = 2 WHERE id = ?', $items());
        });

        self::assertSame(\array_fill(0, 1_500, 1), $affected);
        self::assertSame(1_500, (int) $this->db->execute('SELECT count(*) FROM items WHERE price = 2')->value());
    }

    public function testACancelledBatchHasNoEffect(): void
    {
        $this->items();
        run(function (): void {
            $items = static function (): iterable {
                for ($n = 0;; $n++) {
                    if ($n % 1_000 === 999) {
                        delay(0.01);
                    }
                    yield [$n, "name {$n}"];
                }
            };

            self::thrown(TimeoutException::class, fn () => timeout(0.2, fn () => $this->db->executeMany('INSERT INTO items (id, name) VALUES (?, ?)', $items())));

            self::assertSame([], $this->names());
        });
    }
}
