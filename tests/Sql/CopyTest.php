<?php

declare(strict_types=1);

namespace Weft\Tests\Sql;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Pool\PoolOptions;
use Weft\Pool\Timeouts;
use Weft\Runtime\TimeoutException;
use Weft\Sql\Bytes;
use Weft\Sql\ConnectionLostException;
use Weft\Sql\Database;
use Weft\Sql\DataException;
use Weft\Sql\NotNullViolationException;
use Weft\Sql\InvalidParameterException;
use Weft\Sql\SqlException;
use Weft\Sql\SyntaxErrorException;
use Weft\Sql\Transaction;
use Weft\Sql\UndefinedTableException;
use Weft\Sql\UniqueViolationException;
use Weft\UsageError;
use Weft\Tests\Sql\Support\Colour;
use Weft\Tests\Sql\Support\Witness;

use function Weft\async;
use function Weft\delay;
use function Weft\run;
use function Weft\timeout;

/** COPY of PostgreSQL, in and out. */
final class CopyTest extends TestCase
{
    use Witness;

    private const COLUMNS = ['id', 'name', 'price'];

    private Database $db;

    private string $schema;

    protected function setUp(): void
    {
        $this->schema = 'weft_copy_' . \bin2hex(\random_bytes(6));
        $this->db = Database::connect(self::postgres() . "?options=-csearch_path%3D{$this->schema}", new PoolOptions(size: 1, timeouts: new Timeouts(borrow: 60.0, return: 60.0)));
        $this->db->execute("CREATE SCHEMA {$this->schema}");
        $this->db->execute('CREATE TABLE items (id BIGINT PRIMARY KEY, name TEXT NOT NULL, price NUMERIC)');
    }

    protected function tearDown(): void
    {
        $this->db->execute("DROP SCHEMA {$this->schema} CASCADE");
        $this->db->close();
    }

    // In

    public function testRowsAreStoredWithTheirValues(): void
    {
        $this->db->execute('CREATE TABLE "all of them" (a BIGINT, b TEXT, c BYTEA, d BOOLEAN, e TEXT[], f JSONB, g TIMESTAMPTZ, h DOUBLE PRECISION)');
        $when = new \DateTimeImmutable('2024-02-29 23:59:59.123456+05:30');
        $rows = [
            [\PHP_INT_MIN, "tab\t new\nline\r back\\slash \\N \\. Zoë 𝄞", new Bytes(\implode('', \array_map(\chr(...), \range(0, 255)))), true, ['a', null, "q\"\\\n"], ['k' => "v\n\\"], $when, 0.1 + 0.2],
            [null, '', new Bytes(''), false, [], [], null, -\INF],
            [1, '\\.', null, null, null, null, null, null],
            [2, Colour::Red, null, null, null, null, null, null],
        ];

        self::assertSame(4, $this->db->copyRows("{$this->schema}.all of them", [], $rows));

        $stored = $this->db->execute('SELECT * FROM "all of them"')->rows();
        self::assertSame($rows[0][1], $stored[0]['b']);
        self::assertSame($rows[0][2]->bytes, $stored[0]['c']);
        self::assertSame([\PHP_INT_MIN, true, $rows[0][4], $rows[0][5], $rows[0][7]], [$stored[0]['a'], $stored[0]['d'], $stored[0]['e'], $stored[0]['f'], $stored[0]['h']]);
        self::assertEquals($when, $stored[0]['g']);
        self::assertSame([null, '', '', false, [], [], null, -\INF], \array_values($stored[1]));
        self::assertSame(['\\.', 'red'], [$stored[2]['b'], $stored[3]['b']]);
    }

    public function testRowsKeyedByColumnAreBroughtIntoOrder(): void
    {
        $rows = [['name' => 'one', 'price' => 5, 'id' => 1], [2, 'two', null]];

        self::assertSame(2, $this->db->copyRows('items', self::COLUMNS, $rows));
        self::assertSame(['one', 'two'], $this->names());
        foreach ([['name' => 'x', 'id' => 3], ['id' => 3, 'name' => 'x', 'price' => 1, 'colour' => 'red']] as $wrong) {
            $error = self::thrown(InvalidParameterException::class, fn () => $this->db->copyRows('items', self::COLUMNS, [[4, 'four', 4], $wrong]));
            self::assertMatchesRegularExpression('/^row 2 .*"(price|colour)"/', $error->getMessage());
        }
        self::assertSame(['one', 'two'], $this->names());
    }

    public function testARowThatIsNoArrayIsNamedWithItsTable(): void
    {
        $error = self::thrown(InvalidParameterException::class, fn () => $this->db->copyRows('items', self::COLUMNS, [[1, 'one', 1], 2]));
        $nothing = self::thrown(InvalidParameterException::class, fn () => $this->db->copyRows('items', self::COLUMNS, [null]));

        self::assertSame('row 1 for the table "items" must be an array of its values, got null', $nothing->getMessage());
        self::assertSame('row 2 for the table "items" must be an array of its values, got int', $error->getMessage());
        self::assertSame([], $this->names());
        $own = self::thrown(\TypeError::class, fn () => $this->db->copyRows('items', self::COLUMNS, (static function (): iterable {
            yield [1, 'one', 1];
            throw new \TypeError('mine');
        })()));
        self::assertSame('mine', $own->getMessage());
    }

    public function testTextCsvAndBinaryGoInAsTheyAreCutAnywhere(): void
    {
        $csv = "id,name,price\r\n1,\"one, \"\"quoted\"\"\",1.50\r\n2,\"new\nline\",\r\n";
        self::assertSame(2, $this->db->copyIn('COPY items FROM STDIN WITH (FORMAT csv, HEADER)', \str_split($csv, 3)));
        self::assertSame(1, $this->db->copyIn('COPY items (id, name) FROM STDIN', ["3\tth", "ree\n"]));
        self::assertSame(['new' . "\n" . 'line', 'one, "quoted"', 'three'], $this->names());

        $binary = \implode('', \iterator_to_array($this->db->copyOut('COPY items TO STDOUT (FORMAT binary)'), false));
        $this->db->execute('TRUNCATE items');
        self::assertSame(3, $this->db->copyIn('COPY items FROM STDIN (FORMAT binary)', \str_split($binary, 7)));
        self::assertSame('1.50', $this->db->execute('SELECT price FROM items WHERE id = 1')->value());
    }

    public function testNothingAtAllIsACopyOfNoRows(): void
    {
        self::assertSame(0, $this->db->copyRows('items', self::COLUMNS, []));
        self::assertSame(0, $this->db->copyIn('COPY items FROM STDIN', ['', '']));
        self::assertSame([], \iterator_to_array($this->db->copyOut('COPY items TO STDOUT')));
    }

    /** @return iterable<string, array{string, string, class-string<SqlException>, string}> */
    public static function wrongLines(): iterable
    {
        yield 'a value of another type' => ['COPY items FROM STDIN', "1\tone\t1\nsecret\ttwo\t2\n", DataException::class, 'COPY items, line 2, column id'];
        yield 'a missing column' => ['COPY items FROM STDIN (FORMAT csv)', "1,one,1\n2,two,2\n3,secret\n", DataException::class, 'COPY items, line 3'];
        yield 'nothing where something must be' => ['COPY items FROM STDIN', "1\tone\t1\n2\t\\N\t404\n", NotNullViolationException::class, 'COPY items, line 2'];
        yield 'a second of its kind' => ['COPY items FROM STDIN', "1\tone\t1\n2\ttwo\t2\n1\tsecret\t3\n", UniqueViolationException::class, 'COPY items, line 3'];
    }

    /**
     * @dataProvider wrongLines
     *
     * @param class-string<SqlException> $class
     */
    #[DataProvider('wrongLines')]
    public function testAWrongLineIsNamedWithoutItsValuesAndNothingIsStored(string $statement, string $data, string $class, string $place): void
    {
        $session = $this->session();

        $error = self::thrown($class, fn () => $this->db->copyIn($statement, [$data]));

        self::assertStringContainsString($place, $error->getMessage());
        self::assertDoesNotMatchRegularExpression('/secret|404/', (string) $error->getMessage());
        self::assertSame([], $this->names());
        self::assertSame($session, $this->session(), 'the connection goes on');
    }

    public function testAWrongRowIsNamedByItsNumber(): void
    {
        $rows = static function (): iterable {
            for ($n = 1; $n < 100_000; $n++) {
                yield [$n === 50_000 ? 'secret' : $n, "name {$n}", null];
            }
        };

        $error = self::thrown(DataException::class, fn () => $this->db->copyRows('items', self::COLUMNS, $rows()));

        self::assertStringContainsString('COPY items, line 50000, column id', $error->getMessage());
        self::assertStringNotContainsString('secret', $error->getMessage());
        foreach (["text\0secret" => 'NUL', 'resource' => 'resource'] as $name => $reason) {
            $wrong = $name === 'resource' ? \STDIN : $name;
            $error = self::thrown(InvalidParameterException::class, fn () => $this->db->copyRows('items', self::COLUMNS, [[1, 'one', 1], [2, $wrong, 1]]));
            self::assertMatchesRegularExpression("/^row 2: value 2 .*{$reason}/", $error->getMessage());
            self::assertStringNotContainsString('secret', $error->getMessage());
        }
        self::assertSame([], $this->names());
    }

    public function testAWrongLineEndsTheCopyBeforeItsData(): void
    {
        $made = 0;
        $chunks = static function () use (&$made): iterable {
            yield "not a number\tone\t1\n";
            while (true) {
                $made++;
                yield \str_repeat("1\tone\t1\n", 10_000);
            }
        };

        self::thrown(DataException::class, fn () => $this->db->copyIn('COPY items FROM STDIN', $chunks()));

        self::assertLessThan(1_000, $made);
        self::assertSame([], $this->names());
    }

    public function testAnExceptionOfTheDataIsPassedOnAndNothingIsStored(): void
    {
        $session = $this->session();
        $rows = static function (): iterable {
            for ($n = 1; $n < 20_000; $n++) {
                yield [$n, "name {$n}", null];
            }
            throw new \DomainException('no more');
        };

        $error = self::thrown(\DomainException::class, fn () => $this->db->copyRows('items', self::COLUMNS, $rows()));

        self::assertSame('no more', $error->getMessage());
        self::assertSame([], $this->names());
        self::assertSame($session, $this->session(), 'the connection goes on');
        self::thrown(\DomainException::class, fn () => $this->db->copyRows('items', self::COLUMNS, (static fn () => throw new \DomainException())()));
        self::assertSame($session, $this->session(), 'also where nothing was sent');
    }

    public function testACancelledCopyStoresNothingAndLeavesTheConnectionClean(): void
    {
        run(function (): void {
            $session = $this->session();
            foreach ([0.0, 0.001, 0.02, 0.1] as $after) {
                $rows = static function (): iterable {
                    for ($n = 1;; $n++) {
                        if ($n % 5_000 === 0) {
                            delay(0.001);
                        }
                        yield [$n, "name {$n}", null];
                    }
                };
                self::thrown(TimeoutException::class, fn () => timeout($after, fn () => $this->db->copyRows('items', self::COLUMNS, $rows())));
                self::assertSame([], $this->names());
                self::assertSame($session, $this->session(), 'the connection goes on');
            }
        });
    }

    public function testACopyThatWaitsForALockIsCancelled(): void
    {
        run(function (): void {
            $other = Database::connect(self::postgres());
            $lock = $other->begin();
            $lock->execute("LOCK TABLE {$this->schema}.items IN ACCESS EXCLUSIVE MODE")->rows();
            $session = $this->db->execute('SELECT pg_backend_pid()')->value();

            self::thrown(TimeoutException::class, fn () => timeout(0.2, fn () => $this->db->copyRows('items', self::COLUMNS, [[1, 'one', 1]])));

            $lock->rollback();
            self::assertSame($session, $this->session());
            self::assertSame([], $this->names());
            $other->close();
        });
    }

    public function testALongCopyNeedsLittleMemory(): void
    {
        $before = $peak = self::residentBytes();
        $rows = static function () use (&$peak): iterable {
            $name = \str_repeat('x', 200);
            for ($n = 1; $n <= 300_000; $n++) {
                if ($n % 10_000 === 0) {
                    $peak = \max($peak, self::residentBytes());
                }
                yield [$n, $name, $n];
            }
        };

        self::assertSame(300_000, $this->db->copyRows('items', self::COLUMNS, $rows()));
        self::assertLessThan(20 << 20, $peak - $before, 'bytes more than before, on the way in');

        $before = $peak = self::residentBytes();
        $length = $lines = 0;
        foreach ($this->db->copyOut('COPY items TO STDOUT') as $chunk) {
            $peak = \max($peak, self::residentBytes());
            $length += \strlen($chunk);
            $lines += \substr_count($chunk, "\n");
            self::assertStringEndsWith("\n", $chunk);
        }
        self::assertSame(300_000, $lines);
        self::assertGreaterThan(60_000_000, $length);
        self::assertLessThan(20 << 20, $peak - $before, 'bytes more than before, on the way out');
    }

    public function testALargePieceGoesInWhole(): void
    {
        self::assertSame(1, $this->db->copyIn('COPY items (id, name) FROM STDIN', ["1\t" . \str_repeat('x', 40 << 20) . "\n"]));
        self::assertSame(40 << 20, $this->db->execute('SELECT length(name) FROM items')->value());
        $out = \implode('', \iterator_to_array($this->db->copyOut('COPY items (name) TO STDOUT'), false));
        self::assertSame((40 << 20) + 1, \strlen($out));
    }

    // Out

    public function testDataComesOutAsTheStatementSays(): void
    {
        $this->db->copyRows('items', self::COLUMNS, [[1, 'one, two', '1.50'], [2, "new\nline", null]]);

        $csv = \implode('', \iterator_to_array($this->db->copyOut('COPY (SELECT id, name, price FROM items ORDER BY id) TO STDOUT (FORMAT csv, HEADER)'), false));

        self::assertSame("id,name,price\n1,\"one, two\",1.50\n2,\"new\nline\",\n", $csv);
    }

    public function testALoopThatIsLeftEndsTheCopy(): void
    {
        $session = $this->session();
        foreach ($this->db->copyOut("COPY (SELECT repeat('x', 1000) FROM generate_series(1, 10000000)) TO STDOUT") as $chunk) {
            self::assertStringStartsWith('xxx', $chunk);
            break;
        }
        unset($chunk);

        self::assertSame($session, $this->session(), 'the connection goes on');
    }

    public function testAnErrorInTheMiddleIsThrownByTheLoop(): void
    {
        $session = $this->session();
        $chunks = 0;
        $error = self::thrown(DataException::class, function () use (&$chunks): void {
            foreach ($this->db->copyOut("COPY (SELECT repeat('x', 1000) || 1 / (20000 - n) FROM generate_series(1, 100000) AS n) TO STDOUT") as $_) {
                $chunks++;
            }
        });

        self::assertSame('22012', $error->sqlState);
        self::assertGreaterThan(10, $chunks);
        self::assertSame($session, $this->session());
    }

    // Transactions

    public function testACopyBelongsToItsTransaction(): void
    {
        $this->db->transaction(function (Transaction $tx): void {
            $tx->execute("INSERT INTO items VALUES (1, 'one', 1)");
            self::assertSame(2, $tx->copyRows('items', self::COLUMNS, [[2, 'two', 2], [3, 'three', 3]]));
            self::assertSame("1\n2\n3\n", \implode('', \iterator_to_array($tx->copyOut('COPY (SELECT id FROM items ORDER BY id) TO STDOUT'), false)));
            self::thrown(UniqueViolationException::class, static fn () => $tx->transaction(static fn (Transaction $inner) => $inner->copyRows('items', self::COLUMNS, [[4, 'four', 4], [3, 'again', 3]])));
            $tx->execute("INSERT INTO items VALUES (5, 'five', 5)");
        });
        self::assertSame(['five', 'one', 'three', 'two'], $this->names());

        self::thrown(\DomainException::class, fn () => $this->db->transaction(static function (Transaction $tx): void {
            $tx->copyIn('COPY items (id, name) FROM STDIN', ["6\tsix\n"]);
            throw new \DomainException();
        }));
        self::assertCount(4, $this->names());
    }

    public function testACopyRefusesItsOwnTransactionWhileItRuns(): void
    {
        $large = 'COPY (SELECT generate_series(1, 300000)) TO STDOUT';
        $uses = [
            static fn (Transaction $tx) => $tx->execute('SELECT 1')->value(),
            static fn (Transaction $tx) => $tx->executeMany('INSERT INTO items VALUES (?, ?, ?)', [[1, 'one', 1]]),
            static fn (Transaction $tx) => $tx->transaction(static fn () => null),
            static fn (Transaction $tx) => $tx->copyIn('COPY items FROM STDIN', ["1\tone\t1\n"]),
            static fn (Transaction $tx) => \iterator_to_array($tx->copyOut('COPY items TO STDOUT')),
            static fn (Transaction $tx) => $tx->commit(),
        ];
        $loops = [
            'out' => static function (Transaction $tx, callable $use) use ($large): void {
                foreach ($tx->copyOut($large) as $_) {
                    $use($tx);
                }
            },
            'in' => static fn (Transaction $tx, callable $use) => $tx->copyRows('items', self::COLUMNS, (static function () use ($tx, $use): iterable {
                yield [1, 'one', 1];
                $use($tx);
            })()),
        ];
        foreach ($loops as $loop) {
            foreach ($uses as $use) {
                $tx = $this->db->begin();
                $error = self::thrown(UsageError::class, static fn () => $loop($tx, $use));
                self::assertSame('A COPY of this transaction is running; finish its loop first', $error->getMessage());
                $tx->rollback();
            }
        }
        self::assertSame([], $this->names());

        $this->db->transaction(static function (Transaction $tx) use ($large, $uses): void {
            foreach ($tx->copyOut($large) as $_) {
                self::thrown(UsageError::class, static fn () => $uses[0]($tx));
            }
            self::assertSame(1, $uses[0]($tx));
        });
    }

    public function testACopyInATransactionThatIsLeftEarlyKeepsTheTransaction(): void
    {
        $session = $this->session();
        foreach (['generate_series(1, 10000000)', '1', "repeat('x', 100), pg_sleep(CASE n WHEN 2000 THEN 60 ELSE 0 END) FROM generate_series(1, 2000) AS n"] as $number => $data) {
            $this->db->transaction(function (Transaction $tx) use ($data, $number): void {
                $tx->execute('INSERT INTO items VALUES (?, ?, 1)', [$number, "before {$number}"]);
                foreach ($tx->copyOut("COPY (SELECT {$data}) TO STDOUT") as $_) {
                    break;
                }
                $tx->execute('INSERT INTO items VALUES (?, ?, 1)', [10 + $number, "then {$number}"]);
                $tx->transaction(static fn (Transaction $inner) => \iterator_to_array($inner->copyOut('COPY items TO STDOUT')));
            });
        }
        self::assertSame(['before 0', 'before 1', 'before 2', 'then 0', 'then 1', 'then 2'], $this->names());
        self::assertSame($session, $this->session());
    }

    public function testACopyThatIsLeftByAnExceptionOrACancellationIsUndoneWithItsTransaction(): void
    {
        $session = $this->session();
        $endless = 'COPY (SELECT generate_series(1, 100000000)) TO STDOUT';
        self::thrown(\DomainException::class, fn () => $this->db->transaction(static function (Transaction $tx) use ($endless): void {
            $tx->execute("INSERT INTO items VALUES (1, 'one', 1)");
            // The frame of the exception holds the loop.
            (static function (iterable $chunks): void {
                foreach ($chunks as $_) {
                    throw new \DomainException();
                }
            })($tx->copyOut($endless));
        }));
        run(fn () => self::thrown(TimeoutException::class, fn () => timeout(0.1, fn () => $this->db->transaction(static function (Transaction $tx): void {
            $tx->execute("INSERT INTO items VALUES (1, 'one', 1)");
            foreach ($tx->copyOut("COPY (SELECT pg_sleep(60)) TO STDOUT") as $_) {
            }
        }))));
        self::assertSame([], $this->names());
        self::assertSame($session, $this->session());
    }

    public function testAChunkThatIsNoStringIsNamed(): void
    {
        $error = self::thrown(InvalidParameterException::class, fn () => $this->db->copyIn('COPY items FROM STDIN', ["1\tone\t1\n", 2]));

        self::assertSame('chunk 2 of the data must be a string, got int', $error->getMessage());
        self::assertSame([], $this->names());
    }

    public function testAFailedCopyFailsItsTransaction(): void
    {
        $error = self::thrown(DataException::class, fn () => $this->db->transaction(function (Transaction $tx): void {
            $tx->execute("INSERT INTO items VALUES (1, 'one', 1)");
            self::thrown(DataException::class, static fn () => $tx->copyIn('COPY items FROM STDIN', ["x\n"]));
            $tx->execute("INSERT INTO items VALUES (2, 'two', 2)");
        }));

        self::assertStringContainsString('line 1', $error->getMessage());
        self::assertSame([], $this->names());
    }

    public function testACopyGivenUpInATransactionUndoesIt(): void
    {
        $session = $this->session();
        self::thrown(\DomainException::class, fn () => $this->db->transaction(static function (Transaction $tx): void {
            $tx->execute("INSERT INTO items VALUES (1, 'one', 1)");
            $tx->copyRows('items', self::COLUMNS, (static function (): iterable {
                for ($n = 2; $n < 20_000; $n++) {
                    yield [$n, 'name', null];
                }
                throw new \DomainException();
            })());
        }));

        self::assertSame([], $this->names());
        self::assertSame($session, $this->session());
    }

    // What is no COPY

    public function testAStatementThatIsNoCopyIsRefusedBeforeItRuns(): void
    {
        self::thrown(InvalidParameterException::class, fn () => $this->db->copyIn("INSERT INTO items VALUES (1, 'one', 1)", ['x']));
        self::thrown(InvalidParameterException::class, fn () => \iterator_to_array($this->db->copyOut('SELECT 1')));
        self::assertSame([], $this->names());
        $session = $this->session();
        self::thrown(InvalidParameterException::class, fn () => $this->db->copyIn('COPY items TO STDOUT', ['x']));
        self::thrown(InvalidParameterException::class, fn () => \iterator_to_array($this->db->copyOut('COPY items FROM STDIN')));
        self::thrown(UndefinedTableException::class, fn () => $this->db->copyRows('missing', [], [[1]]));
        self::thrown(SyntaxErrorException::class, fn () => $this->db->copyIn('COPY items FROM STDIN; DROP TABLE items', ["1\tone\t1\n"]));
        self::thrown(UndefinedTableException::class, fn () => $this->db->copyRows('items"; DROP TABLE items; --', [], [[1]]));
        self::assertSame($session, $this->session());
        self::assertSame([], $this->names());
    }

    public function testAKilledSessionIsALostConnection(): void
    {
        run(function (): void {
            $session = $this->session();
            $killer = Database::connect(self::postgres());
            $rows = static function () use ($session, $killer): iterable {
                for ($n = 1; $n < 200_000; $n++) {
                    if ($n === 100_000) {
                        $killer->execute('SELECT pg_terminate_backend(?)', [$session]);
                    }
                    yield [$n, 'name', null];
                }
            };

            self::thrown(ConnectionLostException::class, fn () => $this->db->copyRows('items', self::COLUMNS, $rows()));
            self::assertSame([], $this->names());
            $killer->close();
        });
    }

    public function testSeveralTasksCopyAtATime(): void
    {
        $db = Database::connect(self::postgres() . "?options=-csearch_path%3D{$this->schema}", new PoolOptions(size: 3));
        run(static function () use ($db): void {
            $tasks = \array_map(static fn (int $task) => async(static fn (): int => $db->copyRows('items', self::COLUMNS, (static function () use ($task): iterable {
                for ($n = 0; $n < 5_000; $n++) {
                    yield [$task * 10_000 + $n, 'name', null];
                }
            })())), \range(1, 6));
            foreach ($tasks as $task) {
                self::assertSame(5_000, $task->await());
            }
        });
        self::assertSame(30_000, $db->execute('SELECT count(*) FROM items')->value());
        $db->close();
    }

    public function testOtherDatabasesSayThatTheyHaveNone(): void
    {
        $sqlite = Database::connect('sqlite::memory:');
        self::thrown(UsageError::class, static fn () => $sqlite->copyIn('COPY t FROM STDIN', ['x']));
        self::thrown(UsageError::class, static fn () => $sqlite->copyRows('t', [], [[1]]));
        self::thrown(UsageError::class, static fn () => \iterator_to_array($sqlite->copyOut('COPY t TO STDOUT')));
        self::thrown(UsageError::class, static fn () => $sqlite->transaction(static fn (Transaction $tx) => $tx->copyRows('t', [], [[1]])));
    }

    private function session(): int
    {
        return $this->db->execute('SELECT pg_backend_pid()')->value();
    }

    /** @return list<string> */
    private function names(): array
    {
        return $this->db->execute('SELECT name FROM items ORDER BY name')->column();
    }
}
