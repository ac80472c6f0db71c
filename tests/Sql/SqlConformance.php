<?php

declare(strict_types=1);

namespace Weft\Tests\Sql;

use PHPUnit\Framework\TestCase;
use Weft\Runtime\CancelledException;
use Weft\Runtime\TimeoutException;
use Weft\Sql\Bytes;
use Weft\Sql\CheckViolation;
use Weft\Sql\Connection;
use Weft\Sql\Database;
use Weft\Sql\ForeignKeyViolation;
use Weft\Sql\InvalidDsn;
use Weft\Sql\NotNullViolation;
use Weft\Sql\ParameterError;
use Weft\Sql\PoolClosed;
use Weft\Pool\PoolOptions;
use Weft\Sql\SqlException;
use Weft\Sql\SyntaxError;
use Weft\Sql\Transaction;
use Weft\Sql\UndefinedColumn;
use Weft\Sql\UndefinedTable;
use Weft\Sql\UniqueViolation;
use Weft\Sql\UsageError;
use Weft\Tests\Sql\Support\Colour;
use Weft\Tests\Sql\Support\Label;
use Weft\Tests\Sql\Support\Point;
use Weft\Tests\Sql\Support\Size;
use Weft\Tests\Sql\Support\Witness;

use function Weft\async;
use function Weft\delay;
use function Weft\run;
use function Weft\timeout;

/** What every database promises behind {@see Database}, as tests. */
abstract class SqlConformance extends TestCase
{
    use BatchConformance;
    use Witness;

    private const DEADLINE = 30.0;

    protected Database $db;

    /** Empty, and the same one for every call within a test. */
    abstract protected function dsn(): string;

    /** The database's word for a type: bytes, float, a text that an index takes, and for those of standard SQL. */
    abstract protected function type(string $type): string;

    /** The database's word for a type in CAST. */
    protected function cast(string $type): string
    {
        return $type;
    }

    /** A query that runs until it is cancelled. */
    abstract protected function endless(): string;

    /** A query of `$rows` rows, `n` counting from 1 and `pad` of 200 bytes. */
    abstract protected function series(int $rows): string;

    protected function setUp(): void
    {
        $this->db = $this->connect();
    }

    protected function tearDown(): void
    {
        $this->db->close();
    }

    protected function connect(PoolOptions $pool = new PoolOptions(size: 5)): Database
    {
        return Database::connect($this->dsn(), $pool);
    }

    // Values

    /** @return iterable<string, array{string, mixed, 2?: mixed}> type, parameter, result where it is another value */
    public function values(): iterable
    {
        yield 'null' => ['TEXT', null];
        yield 'true' => ['BOOLEAN', true];
        yield 'false' => ['BOOLEAN', false];
        yield 'zero' => ['BIGINT', 0];
        yield 'largest int' => ['BIGINT', \PHP_INT_MAX];
        yield 'smallest int' => ['BIGINT', \PHP_INT_MIN];
        yield 'float' => ['float', 0.1];
        yield 'float with all its digits' => ['float', 0.1 + 0.2];
        yield 'smallest float' => ['float', 5e-324];
        yield 'largest float' => ['float', \PHP_FLOAT_MAX];
        yield 'infinity' => ['float', \INF];
        yield 'whole float stays a float' => ['float', 3.0];
        yield 'int in a float column' => ['float', 3, 3.0];
        yield 'empty text' => ['TEXT', ''];
        yield 'unicode text' => ['TEXT', "Zoë 𝄞 \u{10FFFF} 日本"];
        yield 'text with newlines, quotes and backslashes' => ['TEXT', "a\r\n\t'b' \"c\" \\d ? :e \$1 %s"];
        yield 'text that looks like a number' => ['TEXT', '007'];
        yield 'bytes' => ['bytes', new Bytes("\x00\x01\xfe\xff"), "\x00\x01\xfe\xff"];
        yield 'every byte without the wrapper' => ['bytes', \implode('', \array_map('chr', \range(0, 255)))];
        yield 'bytes that are UTF-8' => ['bytes', new Bytes('plain \\x41'), 'plain \\x41'];
        yield 'no bytes' => ['bytes', new Bytes(''), ''];
        yield 'JSON object' => ['JSON', ['a' => 1, 'b' => ['c' => null, 'd' => 1.5], 'é/"' => '𝄞']];
        yield 'JSON array' => ['JSON', [1, 'two', null, true, [3.5], ['k' => 'v']]];
        yield 'JSON empty array' => ['JSON', []];
        yield 'JSON empty object' => ['JSON', new \stdClass, []];
        yield 'JSON of an object' => ['JSON', new Point(1, 2), ['x' => 1, 'y' => 2]];
        yield 'JSON float keeps its fraction' => ['JSON', ['f' => 2.0]];
        yield 'JSON text' => ['JSON', '"abc"', 'abc'];
        yield 'date' => ['DATE', '2024-02-29', new \DateTimeImmutable('2024-02-29 00:00:00')];
        yield 'timestamp' => ['TIMESTAMP', new \DateTimeImmutable('2024-02-29 23:59:59.123456')];
        yield 'mutable date' => ['TIMESTAMP', new \DateTime('2024-02-29 23:59:59'), new \DateTimeImmutable('2024-02-29 23:59:59')];
        yield 'timestamp with a zone' => ['TIMESTAMPTZ', new \DateTimeImmutable('2024-07-01T12:00:00.5+05:30')];
        yield 'timestamp before 1970' => ['TIMESTAMPTZ', new \DateTimeImmutable('1815-12-10T00:00:00Z')];
        yield 'backed enum' => ['TEXT', Colour::Red, 'red'];
        yield 'int backed enum as text' => ['TEXT', Size::Large, '3'];
        yield 'int backed enum' => ['BIGINT', Size::Large, 3];
        yield 'Stringable' => ['TEXT', new Label('named'), 'named'];
    }

    /** @dataProvider values */
    public function testAValueComesBackAsItWent(string $type, mixed $parameter, mixed ...$other): void
    {
        $this->db->execute("CREATE TABLE box (held {$this->type($type)})");
        $expected = $other === [] ? $parameter : $other[0];

        $this->db->execute('INSERT INTO box VALUES (?)', [$parameter]);
        $alone = $this->db->execute('SELECT held FROM box')->value();
        $this->db->transaction(function (Transaction $tx) use ($parameter, $expected): void {
            $tx->execute('DELETE FROM box');
            $tx->execute('INSERT INTO box VALUES (:held)', ['held' => $parameter]);
            $this->assertValue($expected, $tx->execute('SELECT held FROM box')->value());
        });

        $this->assertValue($expected, $alone);
    }

    public function testTextAndBytesOfTenMegabytesGoBothWays(): void
    {
        $this->db->execute("CREATE TABLE big (t {$this->type('TEXT')}, b {$this->type('bytes')})");
        $text = \str_repeat('Zoë 789012', 1_000_000);
        $bytes = \random_bytes(1_000) . \str_repeat("\xff\x00", 5_000_000);

        $this->db->execute('INSERT INTO big VALUES (?, ?)', [$text, $bytes]);
        $row = $this->db->execute('SELECT t, b FROM big')->first();

        self::assertTrue($row['t'] === $text, 'the text has changed');
        self::assertTrue($row['b'] === $bytes, 'the bytes have changed');
    }

    public function testWhatCannotBeSentIsRefusedBeforeAnythingIsSent(): void
    {
        foreach ([\STDIN, static fn () => 1, new \ArrayObject([1]), ["\xff" => 1]] as $parameter) {
            $error = self::thrown(ParameterError::class, fn () => $this->db->execute('SELECT ?', [$parameter]));
            self::assertStringContainsString('parameter', \strtolower($error->getMessage()));
        }
    }

    public function testAnArrayThatContainsItselfIsRefused(): void
    {
        $endless = [1];
        $endless[] = &$endless;

        self::thrown(ParameterError::class, fn () => $this->db->execute('SELECT ?', [$endless]));
    }

    public function testAnExceptionOfAParameterIsPassedOn(): void
    {
        $broken = new class () implements \Stringable {
            public function __toString(): string
            {
                throw new \LogicException('not now');
            }
        };

        $error = self::thrown(\LogicException::class, fn () => $this->db->execute('SELECT ?', [$broken]));

        self::assertSame('not now', $error->getMessage());
        self::assertSame(1, $this->db->execute('SELECT 1')->value());
    }

    // Placeholders

    public function testQuestionMarksAreFilledInOrderAndNamesByName(): void
    {
        $this->db->execute('CREATE TABLE pairs (a TEXT, b TEXT)');

        $this->db->execute('INSERT INTO pairs VALUES (?, ?)', ['1', '2']);
        $this->db->execute('INSERT INTO pairs VALUES (:a, :b)', ['b' => '4', 'a' => '3']);
        $this->db->execute('INSERT INTO pairs VALUES (:x, :x)', [':x' => '5']);

        self::assertSame(
            [['a' => '1', 'b' => '2'], ['a' => '3', 'b' => '4'], ['a' => '5', 'b' => '5']],
            $this->db->execute('SELECT a, b FROM pairs ORDER BY a')->rows(),
        );
    }

    public function testPlaceholdersInStringsAndCommentsAreText(): void
    {
        self::assertSame("? :a 'x'", $this->db->execute("SELECT '? :a ''x''' /* ? :b */ -- ?\n")->value());
    }

    /** @return iterable<string, array{string, array<int|string, mixed>, string}> */
    public function misfits(): iterable
    {
        yield 'too few' => ['SELECT ?, ?', ['secret'], '2 ? placeholders, but 1 parameter was given'];
        yield 'too many' => ['SELECT 1', ['secret', 'secret'], 'no placeholder'];
        yield 'a missing name' => ['SELECT :a, :b', ['a' => 'secret'], ':b'];
        yield 'an unknown name' => ['SELECT :a', ['a' => 'secret', 'z' => 'secret'], ':z'];
        yield 'both kinds' => ['SELECT ?, :a', ['a' => 'secret'], 'mixes'];
        yield 'names for question marks' => ['SELECT ?', ['a' => 'secret'], ':a'];
        yield 'a list for names' => ['SELECT :a', ['secret'], ':a'];
        yield 'a list with gaps' => ['SELECT ?, ?', [1 => 'secret', 3 => 'secret'], 'key 1'];
    }

    /**
     * @dataProvider misfits
     *
     * @param array<int|string, mixed> $parameters
     */
    public function testParametersThatDoNotFitAreRefusedByNameAndWithoutTheirValue(string $sql, array $parameters, string $reason): void
    {
        $error = self::thrown(ParameterError::class, fn () => $this->db->execute($sql, $parameters));

        self::assertStringContainsString($reason, $error->getMessage());
        self::assertStringContainsString($sql, $error->getMessage());
        self::assertStringNotContainsString('secret', $error->getMessage());
        self::assertSame($sql, $error->statement);
    }

    public function testParametersThatDoNotFitLeaveATransactionUsable(): void
    {
        $this->db->execute('CREATE TABLE t (a TEXT)');

        $this->db->transaction(function (Transaction $tx): void {
            $tx->execute('INSERT INTO t VALUES (?)', ['1']);
            self::thrown(ParameterError::class, fn () => $tx->execute('INSERT INTO t VALUES (?, ?)', ['1']));
            $tx->execute('INSERT INTO t VALUES (?)', ['2']);
        });

        self::assertSame(['1', '2'], $this->db->execute('SELECT a FROM t ORDER BY a')->column());
    }

    // Results

    public function testAResultIsReadInEveryForm(): void
    {
        $result = $this->db->execute("SELECT 1 AS n, 'a' AS s UNION ALL SELECT 2, 'b' ORDER BY 1");

        self::assertSame([['n' => 1, 's' => 'a'], ['n' => 2, 's' => 'b']], $result->rows());
        self::assertSame($result->rows(), \iterator_to_array($result));
        self::assertSame(['n' => 1, 's' => 'a'], $result->first());
        self::assertSame(1, $result->value());
        self::assertSame([1, 2], $result->column());
        self::assertSame(['n', 's'], $result->columns());
        self::assertSame(2, $result->affected());
        self::assertCount(2, $result);
    }

    public function testAResultWithoutRowsStillKnowsItsColumns(): void
    {
        $result = $this->db->execute("SELECT 1 AS n, 'a' AS s WHERE 1 = 0");

        self::assertSame([], $result->rows());
        self::assertNull($result->first());
        self::assertNull($result->value());
        self::assertSame([], $result->column());
        self::assertSame(['n', 's'], $result->columns());
        self::assertCount(0, $result);
    }

    public function testColumnsNamedLikeNumbersOrNothingAreFound(): void
    {
        $row = $this->db->execute('SELECT 1 AS "7", 2 AS "-3", 3 AS "07", 4 AS " "')->first();

        self::assertSame([7 => 1, -3 => 2, '07' => 3, ' ' => 4], $row);
        self::assertSame(1, $row['7']);
    }

    public function testAffectedCountsChangedRows(): void
    {
        $this->db->execute('CREATE TABLE t (a BIGINT)');

        self::assertSame(3, $this->db->execute('INSERT INTO t VALUES (1), (2), (3)')->affected());
        self::assertSame(2, $this->db->execute('UPDATE t SET a = a + 10 WHERE a > ?', [1])->affected());
        self::assertSame(0, $this->db->execute('DELETE FROM t WHERE a = 99')->affected());
        self::assertSame([11 + 1, 13], $this->db->execute('DELETE FROM t WHERE a > 9 RETURNING a')->column());
        self::assertSame(0, $this->db->execute('CREATE TABLE other (a BIGINT)')->affected());
    }

    public function testAResultOfAHundredThousandRowsIsComplete(): void
    {
        $column = $this->db->execute($this->series(100_000))->column();

        self::assertSame(\range(1, 100_000), $column);
    }

    // Transactions

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
    public function endings(): iterable
    {
        yield 'commit' => [static fn (Transaction $tx) => $tx->commit()];
        yield 'rollback' => [static fn (Transaction $tx) => $tx->rollback()];
    }

    /** @dataProvider endings */
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

    // Deferred errors

    public function testADeferredErrorIsThrownByTheFirstCallThatNeedsAnAnswerAndNamesItsStatement(): void
    {
        $this->items();
        $tx = $this->db->begin();
        $tx->execute('INSERT INTO items (id, name) VALUES (1, ?)', ['one']);
        $failing = $tx->execute('INSERT INTO items (id, name) VALUES (2, ?)', ['one']);
        $after = $tx->execute('SELECT count(*) FROM items');

        $error = self::thrown(UniqueViolation::class, fn () => $after->value());
        self::assertSame('INSERT INTO items (id, name) VALUES (2, ?)', $error->statement);
        self::thrown(SqlException::class, fn () => $failing->affected());
        self::thrown(SqlException::class, fn () => $tx->commit());
        $tx->rollback();

        self::assertSame([], $this->names());
    }

    public function testADeferredErrorIsThrownByTheCommitAtTheLatest(): void
    {
        $this->items();

        $error = self::thrown(NotNullViolation::class, fn () => $this->db->transaction(static function (Transaction $tx): void {
            $tx->execute('INSERT INTO items (id, name) VALUES (1, ?)', ['one']);
            $tx->execute('INSERT INTO items (id, name) VALUES (2, NULL)');
        }));

        self::assertSame('INSERT INTO items (id, name) VALUES (2, NULL)', $error->statement);
        self::assertSame([], $this->names());
    }

    public function testStatementsExecutedBeforeAFailingOneKeepTheirResults(): void
    {
        $this->items();
        $this->db->execute('INSERT INTO items (id, name) VALUES (1, ?)', ['one']);
        $tx = $this->db->begin();
        $before = $tx->execute('SELECT name FROM items');
        $failing = $tx->execute('INSERT INTO items (id, name) VALUES (2, ?)', ['one']);

        self::thrown(UniqueViolation::class, fn () => $failing->affected());
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
            } catch (UndefinedTable) {
            }
        }));

        self::assertSame([], $this->names());
    }

    // Savepoints

    public function testAnErrorInANestedTransactionLeavesTheOuterOneUsable(): void
    {
        $this->items();

        $this->db->transaction(function (Transaction $tx): void {
            $tx->execute('INSERT INTO items (id, name) VALUES (1, ?)', ['outer']);
            self::thrown(UniqueViolation::class, fn () => $tx->transaction(static function (Transaction $inner): void {
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

        self::thrown(UndefinedTable::class, fn () => $this->db->transaction(static function (Transaction $tx) use (&$started): void {
            $tx->execute('INSERT INTO nowhere VALUES (1)');
            $tx->transaction(static function () use (&$started): void {
                $started = true;
            });
        }));

        self::assertFalse($started);
    }

    // Errors

    /** @return iterable<string, array{class-string<SqlException>, string, string, array<int|string, mixed>}> */
    public function mistakes(): iterable
    {
        yield 'unique' => [UniqueViolation::class, '23505', 'INSERT INTO items (id, name) VALUES (?, ?)', [8, 'secret']];
        yield 'primary key' => [UniqueViolation::class, '23505', 'INSERT INTO items (id, name) VALUES (?, ?)', [777, 'secret-2']];
        yield 'foreign key' => [ForeignKeyViolation::class, '23503', 'INSERT INTO items (id, name, parent) VALUES (?, ?, ?)', [8, 'secret-2', 4711]];
        yield 'not null' => [NotNullViolation::class, '23502', 'INSERT INTO items (id, name, price) VALUES (?, ?, ?)', [8, null, 4711]];
        yield 'check' => [CheckViolation::class, '23514', 'INSERT INTO items (id, name, price) VALUES (?, ?, ?)', [8, 'secret-2', -4711]];
        yield 'syntax' => [SyntaxError::class, '42601', 'SELEC ?', ['secret']];
        yield 'undefined table' => [UndefinedTable::class, '42P01', 'SELECT * FROM nowhere WHERE a = ?', ['secret']];
        yield 'undefined column' => [UndefinedColumn::class, '42703', 'SELECT missing FROM items WHERE name = ?', ['secret']];
    }

    /**
     * @dataProvider mistakes
     *
     * @param class-string<SqlException> $class
     * @param array<int|string, mixed> $parameters
     */
    public function testAnErrorHasItsClassItsStateAndItsStatementButNoValue(string $class, string $state, string $sql, array $parameters): void
    {
        $this->items();
        $this->db->execute('INSERT INTO items (id, name) VALUES (?, ?)', [777, 'secret']);

        $alone = self::thrown($class, fn () => $this->db->execute($sql, $parameters));
        $inside = self::thrown($class, fn () => $this->db->transaction(static fn (Transaction $tx) => $tx->execute($sql, $parameters)));

        foreach ([$alone, $inside] as $error) {
            self::assertSame($class, $error::class);
            self::assertSame($state, $error->sqlState);
            self::assertSame($sql, $error->statement);
            self::assertStringContainsString("[statement: {$sql}]", $error->getMessage());
            // The name of the test's database has random digits.
            $said = \preg_replace('/\bweft_\w+/', '', $error->getMessage());
            foreach (['secret', '4711', '777'] as $value) {
                self::assertStringNotContainsString($value, $said);
            }
        }
        self::assertSame(['secret'], $this->names());
    }

    public function testAViolatedConstraintIsNamed(): void
    {
        $this->items();
        $this->db->execute('INSERT INTO items (id, name) VALUES (1, ?)', ['one']);

        $error = self::thrown(UniqueViolation::class, fn () => $this->db->execute('INSERT INTO items (id, name) VALUES (2, ?)', ['one']));
        self::assertContains($error->constraint, ['items_name_key', 'items.name', 'name']);
        $error = self::thrown(CheckViolation::class, fn () => $this->db->execute('INSERT INTO items (id, name, price) VALUES (2, ?, -1)', ['two']));
        self::assertSame('price_is_positive', $error->constraint);
    }

    public function testALongStatementIsCutInMessages(): void
    {
        $error = self::thrown(SyntaxError::class, fn () => $this->db->execute('SELEC ' . \str_repeat('x', 100_000)));

        self::assertLessThan(3_000, \strlen($error->getMessage()));
    }

    public function testAStatementThatIsNotUtf8IsRefusedAndShown(): void
    {
        $sql = "SELECT 'caf\xe9'";
        $runs = [
            fn () => $this->db->execute($sql),
            fn () => $this->db->transaction(static fn (Transaction $tx) => $tx->execute($sql)),
            fn () => \iterator_to_array($this->db->stream($sql)),
        ];
        foreach ($runs as $run) {
            $error = self::thrown(ParameterError::class, $run);
            self::assertStringContainsString('the statement is not UTF-8: byte 0xE9 at offset 11', $error->getMessage());
            self::assertStringContainsString("SELECT 'caf", (string) $error->statement);
        }
    }

    public function testADsnOrPoolNameThatIsNotUtf8IsRefusedWithoutBeingShown(): void
    {
        $error = self::thrown(InvalidDsn::class, static fn () => Database::connect("postgres://app:hunter\xff@localhost/app"));
        self::assertSame('invalid database DSN: it is not UTF-8: byte 0xFF at offset 21; percent-encode it', $error->getMessage());
        self::thrown(UsageError::class, static fn () => Database::connect('sqlite::memory:', new PoolOptions(name: "\xff")));
    }

    /** @dataProvider boundaries */
    public function testAStatementThatBeginsOrEndsATransactionIsRefusedWhereverItIsRun(string $boundary): void
    {
        $this->items();
        $work = static function (Transaction $tx) use ($boundary): void {
            $tx->execute("INSERT INTO items (id, name) VALUES (1, 'one')");
            $tx->execute($boundary);
        };

        foreach ([fn () => $this->db->execute($boundary), fn () => $this->db->transaction($work)] as $run) {
            $error = self::thrown(UsageError::class, $run);
            self::assertStringContainsString("[statement: {$boundary}]", $error->getMessage());
        }
        self::assertSame([], $this->names(), 'the transaction was rolled back');
    }

    /** @return iterable<string, array{string}> */
    public static function boundaries(): iterable
    {
        foreach (['BEGIN', 'COMMIT', '/* done */ end', 'rollback'] as $boundary) {
            yield $boundary => [$boundary];
        }
    }

    public function testTwoStatementsInOneTextAreRefused(): void
    {
        $this->items();

        self::thrown(SyntaxError::class, fn () => $this->db->execute("INSERT INTO items (id, name) VALUES (1, 'a'); DELETE FROM items"));
        self::assertSame([], $this->names());
    }

    /** @return iterable<string, array{string}> */
    public function wrongDsns(): iterable
    {
        yield 'empty' => [''];
        yield 'no scheme' => ['hunter2'];
        yield 'unknown scheme' => ['oracle://app:hunter2@localhost/app'];
    }

    /** @dataProvider wrongDsns */
    public function testAWrongDsnIsRefusedWithoutShowingAPassword(string $dsn): void
    {
        $error = self::thrown(InvalidDsn::class, static fn () => Database::connect($dsn));

        self::assertStringContainsString('DSN', $error->getMessage());
        self::assertStringNotContainsString('hunter2@', $error->getMessage());
    }

    /** @dataProvider wrongDsns */
    public function testAStackTraceShowsNoPartOfADsn(#[\SensitiveParameter] string $dsn): void
    {
        $before = [\ini_set('zend.exception_string_param_max_len', '1000'), \ini_set('zend.exception_ignore_args', '0')];
        try {
            $error = self::thrown(InvalidDsn::class, static fn () => Database::connect($dsn));
            self::assertStringContainsString('SensitiveParameterValue', (string) $error);
            self::assertStringNotContainsString('hunter2@', (string) $error);
        } finally {
            \ini_set('zend.exception_string_param_max_len', (string) $before[0]);
            \ini_set('zend.exception_ignore_args', (string) $before[1]);
        }
    }

    public function testAWrongPoolSizeOrTimeoutIsRefused(): void
    {
        self::thrown(\ValueError::class, static fn () => new PoolOptions(size: 0));
        self::thrown(\ValueError::class, static fn () => new PoolOptions(borrowTimeout: -1.0));
        self::thrown(\ValueError::class, static fn () => new PoolOptions(borrowTimeout: \NAN));
    }

    public function testAClosedDatabaseRefusesWork(): void
    {
        $db = $this->connect();
        $db->execute('SELECT 1');
        $db->close();

        self::thrown(PoolClosed::class, static fn () => $db->execute('SELECT 1'));
        self::thrown(PoolClosed::class, static fn () => $db->transaction(static fn (Transaction $tx) => $tx->execute('SELECT 1')));
        self::thrown(PoolClosed::class, static fn () => \iterator_to_array($db->stream('SELECT 1')));
        $db->close();
    }

    // Streams

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

    // Tasks

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
        $db = $this->connect(new PoolOptions(size: 1, borrowTimeout: 10.0));
        $db->execute('SELECT 1');

        run(function () use ($db): void {
            $started = \hrtime(true);
            self::thrown(TimeoutException::class, fn () => timeout(0.1, fn () => $db->execute($this->endless())));
            self::assertSame(1, $db->execute('SELECT 1')->value());
            self::assertLessThan(5e9, \hrtime(true) - $started);
        });
        $db->close();
    }

    public function testACancelledTransactionIsRolledBackAndTheConnectionIsUsedAgain(): void
    {
        $this->items();
        $db = $this->connect(new PoolOptions(size: 1, borrowTimeout: 10.0));

        run(function () use ($db): void {
            self::thrown(TimeoutException::class, fn () => timeout(0.2, fn () => $db->transaction(function (Transaction $tx): void {
                $tx->execute('INSERT INTO items (id, name) VALUES (1, ?)', ['one'])->affected();
                $tx->execute($this->endless())->rows();
            })));
            self::thrown(TimeoutException::class, fn () => timeout(0.2, fn () => $db->transaction(static function (Transaction $tx): void {
                $tx->execute('INSERT INTO items (id, name) VALUES (2, ?)', ['two'])->affected();
                delay(10.0);
            })));
            self::assertSame(0, $db->execute('SELECT count(*) FROM items')->value());
        });
        $db->close();
    }

    public function testATaskCancelledInALoopOverAStreamEndsTheQuery(): void
    {
        $db = $this->connect(new PoolOptions(size: 1, borrowTimeout: 10.0));

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
            self::thrown(SyntaxError::class, fn () => $this->db->execute('SELEC'));
        });
        self::assertSame(['one'], $this->names());
    }

    // Support

    protected function items(): void
    {
        $this->db->execute(<<<SQL
            CREATE TABLE items (
                id INTEGER PRIMARY KEY,
                name {$this->type('indexed text')} NOT NULL UNIQUE,
                price INTEGER,
                parent INTEGER,
                CONSTRAINT price_is_positive CHECK (price >= 0),
                FOREIGN KEY (parent) REFERENCES items (id)
            )
            SQL);
    }

    /** @return list<string> */
    protected function names(): array
    {
        return $this->db->execute('SELECT name FROM items ORDER BY name')->column();
    }

    private function assertValue(mixed $expected, mixed $actual): void
    {
        if ($expected instanceof \DateTimeInterface) {
            self::assertInstanceOf(\DateTimeImmutable::class, $actual);
            self::assertSame((float) $expected->format('U.u'), (float) $actual->format('U.u'));
        } elseif (\is_float($expected) && \is_nan($expected)) {
            self::assertNan($actual);
        } else {
            self::assertSame($expected, $actual);
        }
    }
}
