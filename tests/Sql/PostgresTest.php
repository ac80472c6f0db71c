<?php

declare(strict_types=1);

namespace Weft\Tests\Sql;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Pool\Timeouts;
use Weft\Runtime\TimeoutException;
use Weft\Sql\Bytes;
use Weft\Sql\ConnectionLostException;
use Weft\Sql\Database;
use Weft\Sql\DataException;
use Weft\Sql\DeadlockException;
use Weft\Sql\LockNotAvailableException;
use Weft\Pool\NestedBorrowException;
use Weft\Sql\InvalidParameterException;
use Weft\Pool\PoolExhaustedException;
use Weft\Pool\PoolOptions;
use Weft\Sql\SerializationFailureException;
use Weft\Sql\StatementCancelledException;
use Weft\Sql\TlsException;
use Weft\Sql\Transaction;
use Weft\Sql\TransactionAbortedException;
use Weft\Sql\UniqueViolationException;
use Weft\UsageError;
use Weft\Tests\Sql\Support\Colour;
use Weft\Tests\Sql\Support\Proxy;

use function Weft\async;
use function Weft\delay;
use function Weft\run;
use function Weft\timeout;

class PostgresTest extends ServerConformance
{
    protected const ENVIRONMENT = 'DATABASE_URL';
    protected const SCHEME = 'postgres';
    protected const CREATE = 'CREATE SCHEMA %s';
    protected const DROP = 'DROP SCHEMA %s CASCADE';
    protected const PAUSE = 'SELECT pg_sleep(0.2)';
    protected const SESSION = 'SELECT pg_backend_pid()';
    protected const KILL = 'SELECT pg_terminate_backend(%d)';

    protected function path(): string
    {
        return "/weft?options=-csearch_path%3D{$this->schema}&application_name={$this->schema}";
    }

    public function testADomainTakesAndReturnsTheValuesOfTheTypeUnderIt(): void
    {
        foreach (['document' => 'jsonb', 'picture' => 'bytea', 'amount' => 'int', 'price' => 'amount', 'words' => 'text[]', 'amounts' => 'amount[]', 'flag' => 'bool', 'moment' => 'timestamptz'] as $domain => $type) {
            $this->db->execute("CREATE DOMAIN {$domain} AS {$type}");
        }
        $when = new \DateTimeImmutable('2024-02-29 12:00:00+00:00');
        $values = [
            'document' => ['a' => [1, 'x"']],
            'picture' => new Bytes("\xff\0\\x41"),
            'price' => 3.0,
            'words' => ['x', null, 'y'],
            'amounts' => [1, 2],
            'flag' => true,
            'moment' => $when,
            'prices price[]' => [3, 4],
            'documents document[]' => [['b' => 1]],
        ];
        $columns = \array_map(static fn (string $name): string => \str_contains($name, ' ') ? $name : "{$name} {$name}", \array_keys($values));
        $this->db->execute('CREATE TABLE typed (' . \implode(', ', $columns) . ')');
        $marks = \implode(', ', \array_fill(0, \count($values), '?'));

        $stored = $this->db->execute("INSERT INTO typed VALUES ({$marks}) RETURNING *", \array_values($values))->first();

        self::assertEquals(['document' => ['a' => [1, 'x"']], 'picture' => "\xff\0\\x41", 'price' => 3, 'words' => ['x', null, 'y'], 'amounts' => [1, 2], 'flag' => true, 'moment' => $when, 'prices' => [3, 4], 'documents' => [['b' => 1]]], $stored);
        self::assertSame(3, $stored['price'] ?? null);
        self::assertTrue($stored['flag'] ?? null);
    }

    public function testAStatementIsPreparedAgainAfterAColumnGotAnotherType(): void
    {
        $db = $this->connect(new PoolOptions(size: 1));
        $db->execute("CREATE TYPE old_mood AS ENUM ('a')");
        $db->execute('CREATE TABLE altered (id INT, mood old_mood)');
        [$insert, $select, $moody] = ['INSERT INTO altered (id) VALUES (?)', 'SELECT id FROM altered WHERE id = ?', 'INSERT INTO altered (mood) VALUES (?)'];
        $db->execute($insert, [1]);
        $db->execute($select, [1]);
        \iterator_to_array($db->stream($select, [1]));
        $db->execute($moody, ['a']);

        $this->db->execute('ALTER TABLE altered ALTER id TYPE bigint');
        self::assertSame(1, $db->execute($insert, [5_000_000_000])->affected());
        self::assertSame([5_000_000_000], \array_column(\iterator_to_array($db->stream($select, [5_000_000_000])), 'id'));
        self::assertSame(2, $db->transaction(static function (Transaction $tx) use ($insert, $select): int {
            $tx->execute('SELECT 1')->value();
            $tx->execute($insert, [5_000_000_000]);

            return $tx->execute($select, [5_000_000_000])->count();
        }));

        $this->db->execute('ALTER TABLE altered ALTER id TYPE text');
        self::assertSame(1, $db->execute($insert, ['abc'])->affected());
        self::assertSame('abc', $db->execute($select, ['abc'])->value());
        self::assertSame(['abc'], \array_column(\iterator_to_array($db->stream($select, ['abc'])), 'id'));

        $this->db->execute("CREATE TYPE mood AS ENUM ('a', 'b')");
        $this->db->execute('ALTER TABLE altered ALTER mood TYPE mood USING mood::text::mood');
        $this->db->execute('DROP TYPE old_mood');
        self::assertSame(1, $db->execute($moody, ['b'])->affected());
        $db->close();
    }

    public function testAValueThatNeverFitsIsRefusedAsBefore(): void
    {
        $this->db->execute('CREATE TABLE narrow (id INT)');
        $insert = 'INSERT INTO narrow VALUES (?)';
        for ($attempt = 0; $attempt < 3; $attempt++) {
            self::assertSame(1, $this->db->execute($insert, [1])->affected());
            self::thrown(InvalidParameterException::class, fn () => $this->db->execute($insert, [5_000_000_000]));
            $error = self::thrown(DataException::class, fn () => $this->db->execute($insert, ['abc']));
            self::assertSame('22P02', $error->sqlState);
        }
        self::assertSame(3, $this->db->execute('SELECT count(*) FROM narrow')->value());
    }

    public function testATransactionThatMeetsAnAddedColumnCanBeRepeated(): void
    {
        $this->db->execute('CREATE TABLE growing (id INT)');
        $db = $this->connect(new PoolOptions(size: 1));
        $all = 'SELECT * FROM growing';
        $db->execute($all);
        $this->db->execute('ALTER TABLE growing ADD name TEXT');
        $work = static fn () => $db->transaction(static function (Transaction $tx) use ($all): array {
            $tx->execute('SELECT 1')->value();

            return $tx->execute($all)->columns();
        });

        $error = self::thrown(TransactionAbortedException::class, $work);

        self::assertSame('0A000', $error->sqlState);
        self::assertStringContainsString('repeat the transaction', $error->getMessage());
        self::assertSame(['id', 'name'], $work());
        $db->close();
    }

    public function testALostConnectionHasTheStateThatTheServerGaveForIt(): void
    {
        run(function (): void {
            $db = $this->connect(new PoolOptions(size: 1));
            $session = $db->execute('SELECT pg_backend_pid()')->value();
            $waiting = async(static fn () => self::thrown(ConnectionLostException::class, static fn () => $db->execute('SELECT pg_sleep(60)')));
            self::eventually(fn (): bool => $this->db->execute("SELECT count(*) FROM pg_stat_activity WHERE pid = ? AND query LIKE '%pg_sleep%'", [$session])->value() === 1, 'the statement runs');
            $this->db->execute('SELECT pg_terminate_backend(?)', [$session]);

            self::assertSame('57P01', $waiting->await()->sqlState);
            $db->close();
        });
    }

    public function testVectorsOfNumbersAreTheirText(): void
    {
        $row = $this->db->execute("SELECT '1 2'::int2vector AS columns, '3 4'::oidvector AS types, indkey FROM pg_index LIMIT 1")->first();

        self::assertSame(['1 2', '3 4'], [$row['columns'], $row['types']]);
        self::assertIsString($row['indkey']);
    }

    /** Their elements have commas inside and a semicolon between them. */
    public function testAnArrayOfBoxesIsItsText(): void
    {
        self::assertSame('{(1,1),(0,0);(3,3),(2,2)}', $this->db->execute("SELECT ARRAY[box '(1,1),(0,0)', box '(3,3),(2,2)']")->value());
    }

    protected function running(int $session): string
    {
        return "SELECT count(*) FROM pg_stat_activity WHERE pid = {$session} AND query LIKE '%pg_sleep%' AND state = 'active'";
    }

    protected function prepared(Database $db): int
    {
        return $db->execute('SELECT count(*) FROM pg_prepared_statements')->value();
    }

    protected function alive(int $session): string
    {
        return "SELECT count(*) FROM pg_stat_activity WHERE pid = {$session}";
    }

    protected function type(string $type): string
    {
        return ['bytes' => 'bytea', 'float' => 'double precision', 'indexed text' => 'text'][$type] ?? $type;
    }

    protected function endless(): string
    {
        return 'SELECT pg_sleep(60)';
    }

    protected function series(int $rows): string
    {
        return "SELECT n, repeat('x', 200) AS pad FROM generate_series(1, $rows) AS n";
    }

    // Values only PostgreSQL has

    public static function values(): iterable
    {
        yield from parent::values();
        yield 'NaN' => ['double precision', \NAN];
        yield 'numeric as string' => ['numeric', '12345678901234567890.123456789012345678'];
        yield 'numeric with its scale' => ['numeric(10, 2)', '1.5', '1.50'];
        yield 'numeric from an int' => ['numeric', 7, '7'];
        yield 'numeric from a float' => ['numeric', 0.1, '0.1'];
        yield 'smallint' => ['smallint', -32768];
        yield 'int from text' => ['integer', '42', 42];
        yield 'int from a whole float' => ['integer', 42.0, 42];
        yield 'int from a bool' => ['integer', true, 1];
        yield 'bool from an int' => ['boolean', 1, true];
        yield 'text from an int' => ['text', 42, '42'];
        yield 'real keeps its decimal form' => ['real', 0.1];
        yield 'varchar' => ['varchar(20)', 'Zoë'];
        yield 'char is padded' => ['char(4)', 'ab', 'ab  '];
        yield 'jsonb object' => ['jsonb', ['b' => [1, 2.5, null], 'a' => 'é'], ['a' => 'é', 'b' => [1, 2.5, null]]];
        yield 'jsonb list' => ['jsonb', ['x', 'y']];
        yield 'jsonb large number' => ['jsonb', '[123456789012345678901234567890]', ['123456789012345678901234567890']];
        yield 'a time in jsonb' => ['jsonb', new \DateTimeImmutable('2024-07-01T12:00:00.5Z'), '2024-07-01T12:00:00.500000+00:00'];
        yield 'uuid' => ['uuid', '0190a5b0-7c4d-7abc-8def-0123456789ab'];
        yield 'uuid in capitals' => ['uuid', '0190A5B0-7C4D-7ABC-8DEF-0123456789AB', '0190a5b0-7c4d-7abc-8def-0123456789ab'];
        yield 'time' => ['time', '23:59:59.5'];
        yield 'interval' => ['interval', '1 day 02:03:04'];
        yield 'inet' => ['inet', '10.0.0.0/8'];
        yield 'an offset with seconds' => ['timestamptz', '1890-06-01 12:53:28+00:53:28', new \DateTimeImmutable('1890-06-01T12:00:00Z')];
        yield 'infinity is no date' => ['timestamptz', 'infinity'];
        yield 'a year beyond four digits stays text' => ['date', '12024-01-02'];
        yield 'before Christ stays text' => ['date', '0044-03-15 BC'];
        yield 'int array' => ['int[]', [1, null, -3]];
        yield 'bigint array' => ['bigint[]', [\PHP_INT_MAX, \PHP_INT_MIN]];
        yield 'empty array' => ['int[]', []];
        yield 'text array' => ['text[]', ['a', '', 'NULL', null, 'with "quotes", {braces} and \\', "Zoë\n"]];
        yield 'bool array' => ['boolean[]', [true, false, null]];
        yield 'float array' => ['double precision[]', [0.1, 3.0, -\INF]];
        yield 'numeric array' => ['numeric[]', ['1.10', '2'], ['1.10', '2']];
        yield 'uuid array' => ['uuid[]', ['0190a5b0-7c4d-7abc-8def-0123456789ab']];
        yield 'bytea array' => ['bytea[]', [new Bytes('ab'), "\xff\x00"], ['ab', "\xff\x00"]];
        yield 'jsonb array' => ['jsonb[]', [['a' => 1], ['b' => [2]]]];
        yield 'nested array' => ['int[]', [[1, 2], [3, 4]]];
        yield 'enum array' => ['text[]', [Colour::Red], ['red']];
    }

    public function testTypesOfTheDatabaseItselfAreText(): void
    {
        $this->db->execute("CREATE TYPE mood AS ENUM ('red', 'blue')");
        $this->db->execute('CREATE DOMAIN positive AS integer CHECK (VALUE > 0)');
        $this->db->execute('CREATE TABLE own (m mood, ms mood[], p positive)');

        $this->db->execute('INSERT INTO own VALUES (?, ?, ?)', [Colour::Red, ['blue', 'red'], 5]);

        self::assertSame(['m' => 'red', 'ms' => ['blue', 'red'], 'p' => 5], $this->db->execute('SELECT * FROM own')->first());
    }

    public function testATimestampWithoutAZoneIsTheWallClockBothWays(): void
    {
        $this->db->execute('CREATE TABLE clock (local timestamp, global timestamptz)');
        $when = new \DateTimeImmutable('2024-07-01 12:00:00', new \DateTimeZone('Asia/Kolkata'));

        $this->db->execute('INSERT INTO clock VALUES (?, ?)', [$when, $when]);
        $row = $this->db->execute('SELECT local, global, global = ? AS same FROM clock', [$when])->first();

        self::assertSame('2024-07-01 12:00:00', $row['local']->format('Y-m-d H:i:s'));
        self::assertSame(\date_default_timezone_get(), $row['local']->getTimezone()->getName());
        self::assertSame($when->getTimestamp(), $row['global']->getTimestamp());
        self::assertTrue($row['same']);
    }

    /** @return iterable<string, array{string, mixed}> */
    public static function unfitting(): iterable
    {
        yield 'bytes as text' => ['text', "sec\xffret"];
        yield 'text with a NUL byte' => ['text', "secret\0"];
        yield 'int out of range' => ['smallint', 40404];
        yield 'fraction as int' => ['integer', 404.5];
        yield 'list as int' => ['integer', [40404]];
        yield 'int as date' => ['date', 40404];
    }

    /** @dataProvider unfitting */
    #[DataProvider('unfitting')]
    public function testAValueThatDoesNotFitItsColumnIsRefusedWithoutShowingIt(string $type, mixed $value): void
    {
        $this->db->execute("CREATE TABLE box (held {$type})");

        $error = self::thrown(InvalidParameterException::class, fn () => $this->db->execute('INSERT INTO box VALUES (?)', [$value]));

        self::assertStringContainsString('parameter 1', $error->getMessage());
        self::assertDoesNotMatchRegularExpression('/secret|404/', $error->getMessage());
    }

    public function testAValueTheServerCannotReadIsNotShown(): void
    {
        foreach (['integer' => 'secret', 'date' => 'secret', 'json' => '{secret', 'uuid' => 'secret', 'mood' => 'secret', 'varchar(3)' => 'secret'] as $type => $value) {
            if ($type === 'mood') {
                $this->db->execute("CREATE TYPE mood AS ENUM ('red')");
            }
            $error = self::thrown(DataException::class, fn () => $this->db->execute("SELECT CAST(? AS {$type})::text, 1 / 0", [$value]));
            self::assertStringNotContainsString('secret', $error->getMessage(), $type);
        }
    }

    public function testQuestionMarkOperatorsAreWrittenTwice(): void
    {
        self::assertTrue($this->db->execute('SELECT CAST(? AS jsonb) ?? ?', ['{"a": 1}', 'a'])->value());
        self::assertFalse($this->db->execute("SELECT CAST(:doc AS jsonb) ??| ARRAY['b']", ['doc' => ['a' => 1]])->value());
    }

    public function testAListIsOneParameter(): void
    {
        self::assertSame([2, 3], $this->db->execute('SELECT n FROM generate_series(1, 5) AS n WHERE n = ANY(?)', [[2, 3, 9]])->column());
    }

    // Round trips

    public function testATransactionWhoseResultsNobodyAsksForIsOneRoundTrip(): void
    {
        $this->behindProxy(function (Database $db, Proxy $proxy): void {
            $db->execute('CREATE TABLE t (a BIGINT)');
            $work = static function (Transaction $tx) use ($proxy): void {
                foreach (\range(1, 5) as $n) {
                    $tx->execute('INSERT INTO t VALUES (?)', [$n]);
                }
                self::assertSame(0, $proxy->trips(), 'round trips before the end');
            };
            $db->transaction(static fn (Transaction $tx) => $tx->execute('INSERT INTO t VALUES (?)', [0]));
            $proxy->trips();

            $db->transaction($work);

            self::assertSame(1, $proxy->trips(), 'round trips of the whole transaction');
            self::assertSame(6, $db->execute('SELECT count(*) FROM t')->value());
        });
    }

    public function testBeginTravelsWithTheFirstStatementsAndCommitWithTheLast(): void
    {
        $this->behindProxy(function (Database $db, Proxy $proxy): void {
            $db->execute('CREATE TABLE t (a BIGINT)');
            $db->transaction(static function (Transaction $tx): void {
                $tx->execute('INSERT INTO t VALUES (?)', [1]);
                $tx->execute('SELECT count(*) FROM t')->value();
            });
            $proxy->trips();

            $db->transaction(static function (Transaction $tx) use ($proxy): void {
                $tx->execute('INSERT INTO t VALUES (?)', [1]);
                $count = $tx->execute('SELECT count(*) FROM t');
                self::assertSame(0, $proxy->trips(), 'before a result is asked for');
                self::assertSame(2, $count->value());
                self::assertSame(1, $proxy->trips(), 'for BEGIN, INSERT and SELECT');
                $tx->execute('INSERT INTO t VALUES (?)', [2]);
                $tx->execute('INSERT INTO t VALUES (?)', [3]);
            });

            self::assertSame(1, $proxy->trips(), 'for two INSERTs and COMMIT');
        });
    }

    public function testMuchThatIsDeferredTravelsBeforeTheEnd(): void
    {
        $this->behindProxy(static function (Database $db, Proxy $proxy): void {
            $db->execute('CREATE TABLE t (a TEXT)');
            $insert = static fn (Transaction $tx, string $text) => $tx->execute('INSERT INTO t VALUES (?)', [$text]);
            $db->transaction(static fn (Transaction $tx) => $insert($tx, ''));
            $proxy->trips();

            $db->transaction(static function (Transaction $tx) use ($proxy, $insert): void {
                foreach (\range(1, 999) as $_) {
                    $insert($tx, '');
                }
                self::assertSame(0, $proxy->trips(), 'for 999 statements');
                $insert($tx, '');
                self::assertGreaterThan(0, $proxy->trips(), 'for the thousandth');
                $insert($tx, \str_repeat('x', 9 << 20));
                self::assertGreaterThan(0, $proxy->trips(), 'for 9 MiB');
            });
            self::assertSame(1_002, $db->execute('SELECT count(*) FROM t')->value());
        });
    }

    public function testAQueryThatBeginsWithACommentIsStreamedFromACursor(): void
    {
        $this->db->transaction(static function (Transaction $tx): void {
            foreach (['', '/* report */ ', "-- first\n--second\n(", "/* outer /* inner */ ? ' */\n( /**/ "] as $start) {
                $end = \str_contains($start, '(') ? ')' : '';
                foreach ($tx->stream("{$start}SELECT CAST(? AS INT) AS n{$end}", [7], chunk: 1) as $row) {
                    self::assertSame(7, $row['n']);
                    self::assertSame(1, $tx->execute("SELECT count(*) FROM pg_cursors WHERE name LIKE 'weft%'")->value(), $start);
                }
            }
            foreach ($tx->stream('/* WITH */ WITH a AS (SELECT 1 AS n) SELECT n FROM a') as $_) {
                self::assertSame(1, $tx->execute("SELECT count(*) FROM pg_cursors WHERE name LIKE 'weft%'")->value());
            }
        });
    }

    public function testAStatementThatWritesBehindACommentIsStreamed(): void
    {
        $this->items();

        $this->db->transaction(static function (Transaction $tx): void {
            $insert = "/* SELECT */ INSERT INTO items (id, name) VALUES (1, 'one') RETURNING id";
            foreach ([$insert, "-- SELECT\nUPDATE items SET name = 'two' RETURNING id", '; SELECT id FROM items'] as $sql) {
                self::assertSame([['id' => 1]], \iterator_to_array($tx->stream($sql)), $sql);
            }
        });
    }

    public function testAStreamInATransactionThatIsReadToItsEndLeavesNoCursor(): void
    {
        $this->db->transaction(function (Transaction $tx): void {
            self::assertCount(2_500, \iterator_to_array($tx->stream($this->series(2_500))));
            self::assertSame(0, $tx->execute("SELECT count(*) FROM pg_cursors WHERE name LIKE 'weft%'")->value());
        });
    }

    public function testAStreamInATransactionAlsoReadsWhatAStatementReturnsThatWrites(): void
    {
        $this->items();

        $ids = $this->db->transaction(static fn (Transaction $tx) => \array_column(\iterator_to_array(
            $tx->stream("INSERT INTO items (id, name) VALUES (1, 'one'), (2, 'two') RETURNING id"),
        ), 'id'));

        self::assertSame([1, 2], $ids);

        $names = $this->db->transaction(static fn (Transaction $tx) => \array_column(\iterator_to_array(
            $tx->stream("WITH new AS (INSERT INTO items (id, name) VALUES (3, 'three') RETURNING name)\nSELECT name FROM new"),
        ), 'name'));
        self::assertSame(['three'], $names);
    }

    public function testARollbackOfWhatWasNeverSentIsNoRoundTrip(): void
    {
        $this->behindProxy(static function (Database $db, Proxy $proxy): void {
            $db->execute('SELECT 1');
            $proxy->trips();
            $tx = $db->begin();
            $tx->execute('SELECT 2');
            $tx->rollback();

            self::assertSame(0, $proxy->trips());
        });
    }

    // Locks

    public function testADeadlockAndASerializationFailureHaveTheirClasses(): void
    {
        $this->items();
        $this->db->execute("INSERT INTO items (id, name) VALUES (1, 'one'), (2, 'two')");

        run(function (): void {
            $locked = new \ArrayObject();
            $cross = fn (int $first, int $second) => fn () => $this->db->transaction(static function (Transaction $tx) use ($first, $second, $locked): void {
                $tx->execute('UPDATE items SET price = 1 WHERE id = ?', [$first])->affected();
                $locked->append(true);
                self::eventually(static fn (): bool => \count($locked) === 2, 'each has one of the locks');
                $tx->execute('UPDATE items SET price = 2 WHERE id = ?', [$second])->affected();
            });
            $outcomes = self::outcomes($cross(1, 2), $cross(2, 1));
            self::assertContains(DeadlockException::class, $outcomes);
            self::assertContains(null, $outcomes);

            $read = new \ArrayObject();
            $increment = fn () => $this->db->transaction(static function (Transaction $tx) use ($read): void {
                $tx->execute('SET TRANSACTION ISOLATION LEVEL SERIALIZABLE');
                $price = $tx->execute('SELECT sum(price) FROM items')->value();
                $read->append(true);
                self::eventually(static fn (): bool => \count($read) === 2, 'each has read');
                $tx->execute('UPDATE items SET price = ? WHERE id = 1', [(int) $price + 1]);
            });
            $outcomes = self::outcomes($increment, $increment);
            self::assertContains(SerializationFailureException::class, $outcomes);
            self::assertContains(null, $outcomes);
        });
    }

    public function testADeferredConstraintFailsTheCommit(): void
    {
        $this->db->execute('CREATE TABLE d (a INT UNIQUE DEFERRABLE INITIALLY DEFERRED)');

        $error = self::thrown(UniqueViolationException::class, fn () => $this->db->transaction(static function (Transaction $tx): void {
            $tx->execute('INSERT INTO d VALUES (1)');
            self::assertSame(1, $tx->execute('INSERT INTO d VALUES (1)')->affected());
        }));

        self::assertSame('d_a_key', $error->constraint);
        self::assertSame(0, $this->db->execute('SELECT count(*) FROM d')->value());
    }

    public function testALockThatIsTakenAndAStatementTimeoutHaveTheirClasses(): void
    {
        $this->items();
        $this->db->execute("INSERT INTO items (id, name) VALUES (1, 'one')");
        $holder = $this->db->begin();
        $holder->execute('SELECT 1 FROM items FOR UPDATE')->rows();

        $error = self::thrown(LockNotAvailableException::class, fn () => $this->db->execute('SELECT 1 FROM items FOR UPDATE NOWAIT'));
        self::assertSame('55P03', $error->sqlState);
        $holder->rollback();
        $error = self::thrown(StatementCancelledException::class, fn () => $this->db->transaction(static function (Transaction $tx): void {
            $tx->execute('SET LOCAL statement_timeout = 50');
            $tx->execute('SELECT pg_sleep(10)')->rows();
        }));
        self::assertSame('57014', $error->sqlState);
    }

    // Clean sessions

    /** @return iterable<string, array{list<string>, string}> what a borrower does, and how the next one would see it */
    public static function residues(): iterable
    {
        yield 'SET' => [["SET statement_timeout = '77s'"], 'SELECT 0 FROM pg_settings WHERE name = \'statement_timeout\' AND setting <> \'0\''];
        yield 'set_config' => [["SELECT set_config('weft.mine', 'x', false)"], "SELECT 0 WHERE current_setting('weft.mine', true) <> ''"];
        yield 'UPDATE pg_settings' => [["UPDATE pg_settings SET setting = '77' WHERE name = 'statement_timeout'"], 'SELECT 0 FROM pg_settings WHERE name = \'statement_timeout\' AND setting <> \'0\''];
        yield 'search_path' => [['SET search_path = pg_catalog'], "SELECT 0 WHERE current_schema() = 'pg_catalog'"];
        yield 'SET ROLE' => [['SET ROLE pg_monitor'], 'SELECT 0 WHERE current_user <> session_user'];
        yield 'temporary table' => [['CREATE TEMPORARY TABLE mine ()'], "SELECT 0 WHERE to_regclass('pg_temp.mine') IS NOT NULL"];
        yield 'advisory lock' => [['SELECT pg_advisory_lock(4711)'], "SELECT 0 FROM pg_locks WHERE locktype = 'advisory' AND objid = 4711 AND pid = pg_backend_pid()"];
        yield 'LISTEN' => [['LISTEN mine'], 'SELECT 0 FROM pg_listening_channels()'];
        yield 'prepared' => [['PREPARE mine AS SELECT 1'], "SELECT 0 FROM pg_prepared_statements WHERE name = 'mine'"];
        yield 'cursor' => [['DECLARE mine CURSOR WITH HOLD FOR SELECT 1'], "SELECT 0 FROM pg_cursors WHERE name = 'mine'"];
        yield 'open transaction' => [['SELECT txid_current()'], 'SELECT 0 WHERE txid_current_if_assigned() IS NOT NULL'];
    }

    /**
     * @dataProvider residues
     *
     * @param list<string> $statements
     */
    #[DataProvider('residues')]
    public function testTheNextBorrowerSeesNothingOfTheLast(array $statements, string $trace): void
    {
        $db = $this->connect(new PoolOptions(size: 1));
        $session = $db->execute('SELECT pg_backend_pid()')->value();

        foreach ($statements as $statement) {
            $db->execute($statement);
        }
        self::assertSame([], $db->execute($trace)->rows(), 'after a statement of its own');
        $tx = $db->begin();
        foreach ($statements as $statement) {
            $tx->execute($statement)->rows();
        }
        unset($tx);
        self::assertSame([], $db->execute($trace)->rows(), 'after an abandoned transaction');
        $db->transaction(static function (Transaction $tx) use ($statements): void {
            foreach ($statements as $statement) {
                $tx->execute($statement);
            }
        });
        self::assertSame([], $db->execute($trace)->rows(), 'after a transaction');
        self::assertSame($session, $db->execute('SELECT pg_backend_pid()')->value(), 'the session itself goes on');
        $db->close();
    }

    public function testACleanSessionPaysNoRoundTripAndAnUncleanOneKeepsItsPreparedStatements(): void
    {
        $this->behindProxy(static function (Database $db, Proxy $proxy): void {
            $db->execute('SELECT 1 AS a');
            $proxy->trips();
            $db->execute('SELECT 1 AS a');
            self::assertSame(1, $proxy->trips());
            $db->execute('SET statement_timeout = 0');
            $db->execute('SELECT 1 AS a');
            self::assertSame(3, $proxy->trips(), 'SET, cleaning, SELECT without preparing it again');
        });
    }

    // Pool

    public function testAnExhaustedPoolSaysHowItStands(): void
    {
        $db = $this->connect(new PoolOptions(size: 2, minimumIdle: 2, timeouts: new Timeouts(borrow: 0.1), name: 'orders'));
        self::eventually(static fn (): bool => $db->stats()['idle'] === 2, 'both connections are open: a holder waits for none');
        $holders = [self::holder($db), self::holder($db)];

        $error = self::thrown(PoolExhaustedException::class, static fn () => $db->execute('SELECT 1'));
        $stats = $db->stats();

        self::assertStringContainsString('"orders"', $error->getMessage());
        self::assertStringContainsString('2 of 2 connections in use, 1 waiting, timed out after 100ms; held by task #', $error->getMessage());
        self::assertStringContainsString(__FILE__, $error->getMessage());
        self::assertStringContainsString('last statement: SELECT 1', $error->getMessage());
        self::assertSame([2, 2, 0, 0, 1], [$stats['size'], $stats['in_use'], $stats['idle'], $stats['waiting'], $stats['timeouts']]);
        $holders[0]->rollback();
        self::assertSame(1, $db->execute('SELECT 1')->value());
        $holders[1]->rollback();
        $db->close();
    }

    public function testAskingForAnotherConnectionWhileHoldingTheOnlyOneFailsAtOnce(): void
    {
        $db = $this->connect(new PoolOptions(size: 1, timeouts: new Timeouts(borrow: 60.0)));
        $started = \hrtime(true);

        $nested = self::thrown(NestedBorrowException::class, static fn () => $db->transaction(static function (Transaction $tx) use ($db): void {
            $tx->execute('SELECT 1')->value();
            $db->execute('SELECT 2');
        }));

        self::assertStringContainsString('last statement: SELECT 1', $nested->getMessage());
        self::assertLessThan(30e9, \hrtime(true) - $started, 'it did not wait for its time-out');
        self::assertSame(1, $db->execute('SELECT 1')->value());
        $db->close();
    }

    /** A transaction with a connection, begun by a task of its own. */
    private static function holder(Database $db): Transaction
    {
        return run(static fn (): Transaction => async(static function () use ($db): Transaction {
            $holder = $db->begin();
            $holder->execute('SELECT 1')->value();

            return $holder;
        })->await());
    }

    public function testABorrowTimeoutOfZeroWaitsForNobodyButOpensConnections(): void
    {
        $db = $this->connect(new PoolOptions(size: 1, timeouts: new Timeouts(borrow: 0.0)));

        self::assertSame(1, $db->execute('SELECT 1')->value());
        $holder = self::holder($db);
        $exhausted = self::thrown(PoolExhaustedException::class, static fn () => $db->execute('SELECT 1'));
        self::assertStringContainsString('timed out after 0ns', $exhausted->getMessage());
        $holder->commit();
        self::assertSame(1, $db->execute('SELECT 1')->value());
        $db->close();
    }

    public function testTheFirstWaiterIsServedFirst(): void
    {
        $db = $this->connect(new PoolOptions(size: 1));

        run(static function () use ($db): void {
            $served = [];
            foreach (\range(1, 20) as $n) {
                async(static function () use ($db, $n, &$served): void {
                    $db->execute('SELECT pg_sleep(0.001)');
                    $served[] = $n;
                });
            }
            while (\count($served) < 20) {
                delay(0.01);
            }
            self::assertSame(\range(1, 20), $served);
        });
        $db->close();
    }

    public function testAWaiterThatIsCancelledLeavesTheQueue(): void
    {
        $db = $this->connect(new PoolOptions(size: 1));

        run(static function () use ($db): void {
            $holder = self::holder($db);
            self::thrown(TimeoutException::class, static fn () => timeout(0.05, static fn () => $db->execute('SELECT 1')));
            delay(0.0);
            self::assertSame(0, $db->stats()['waiting']);
            $holder->rollback();
            self::assertSame(1, $db->execute('SELECT 1')->value());
        });
        $db->close();
    }

    // Connecting

    public function testACertificateOfAnUnknownAuthorityIsRefused(): void
    {
        $dsn = \getenv('DATABASE_TLS_URL');
        self::assertNotFalse($dsn, 'DATABASE_TLS_URL is not set: run `make services`');
        $db = Database::connect($dsn);

        self::assertTrue($db->execute('SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()')->value());
        $db->close();
        foreach (['/&sslrootcert=[^&]*/' => '', '/sslmode=[^&]*&sslrootcert=[^&]*/' => 'sslrootcert=system'] as $part => $replacement) {
            $noAuthority = Database::connect((string) \preg_replace($part, $replacement, $dsn));
            self::thrown(TlsException::class, static fn () => $noAuthority->execute('SELECT 1'));
        }
    }

    public function testOnlySqliteWaitsForChanges(): void
    {
        self::thrown(UsageError::class, fn () => $this->db->waitForChange());
    }

    public function testAForkedChildLeavesListenersAndCopiesToItsParent(): void
    {
        $this->assertUnharmedByFork(<<<'PHP'
            $listener = $db->listen(['a']);
            $backends = fn () => $db->execute("SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN \"a\"' AND datname = current_database()")->value();
            $listening = $backends();
            foreach (['x', 'y', 'z'] as $payload) {
                $db->notify('a', $payload);
            }
            foreach ($listener as $notification) {
                if (!fork()) {
                    $notification->payload === 'x' ? exit(0) : $listener->close();
                    unset($listener);
                    exit(0);
                }
                if (!$notification instanceof Weft\Sql\Notification) {
                    echo 'missed: ', $notification->reason ?? '';
                }
                if ($notification->payload === 'z') {
                    break;
                }
            }
            $listening === $backends() || print('the subscription has ended');
            foreach ($db->copyOut("COPY (SELECT repeat('x', 1000) FROM generate_series(1, 300)) TO STDOUT") as $chunk) {
                if (!fork()) {
                    exit(0);
                }
            }
            PHP);
    }
}
