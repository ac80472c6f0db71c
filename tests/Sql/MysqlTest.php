<?php

declare(strict_types=1);

namespace Weft\Tests\Sql;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Pool\PoolOptions;
use Weft\Sql\AuthenticationException;
use Weft\Sql\Database;
use Weft\Sql\DataException;
use Weft\Sql\DeadlockException;
use Weft\Sql\InsufficientPrivilegeException;
use Weft\Sql\LockNotAvailableException;
use Weft\Sql\InvalidParameterException;
use Weft\Sql\SqlException;
use Weft\Sql\StatementCancelledException;
use Weft\Sql\TlsException;
use Weft\Sql\Transaction;
use Weft\Sql\UndefinedTableException;
use Weft\UsageError;
use Weft\Tests\Sql\Support\Colour;
use Weft\Tests\Sql\Support\MysqlProduct;
use Weft\Tests\Sql\Support\Proxy;

use function Weft\async;
use function Weft\delay;
use function Weft\run;

/** Of MariaDB or MySQL, whichever the server is. */
class MysqlTest extends ServerConformance
{
    protected const ENVIRONMENT = 'WEFT_MYSQL_DSN';
    protected const SCHEME = 'mysql';
    protected const CREATE = 'CREATE DATABASE %s';
    protected const DROP = 'DROP DATABASE %s';
    protected const PAUSE = 'SELECT SLEEP(0.2)';
    protected const SESSION = 'SELECT CONNECTION_ID()';
    protected const KILL = 'KILL %d';

    protected function path(): string
    {
        return "/{$this->schema}";
    }

    protected function running(int $session): string
    {
        return "SELECT count(*) FROM information_schema.processlist WHERE id = {$session} AND info LIKE '%SLEEP%'";
    }

    protected function prepared(Database $db): int
    {
        $counts = \array_column($db->execute("SHOW SESSION STATUS LIKE 'Com_stmt_%'")->rows(), 'Value', 'Variable_name');

        return (int) $counts['Com_stmt_prepare'] - (int) $counts['Com_stmt_close'];
    }

    protected function alive(int $session): string
    {
        return "SELECT count(*) FROM information_schema.processlist WHERE id = {$session}";
    }

    protected function users(): array
    {
        return [...parent::users(), self::isMariaDb() ? 'weft_ed25519' : 'weft_sha256'];
    }

    protected function type(string $type): string
    {
        return [
            'bytes' => 'LONGBLOB',
            'float' => 'DOUBLE',
            'TEXT' => 'LONGTEXT',
            'indexed text' => 'VARCHAR(200)',
            'TIMESTAMP' => 'DATETIME(6)',
            'TIMESTAMPTZ' => 'DATETIME(6)',
        ][$type] ?? $type;
    }

    protected function cast(string $type): string
    {
        return ['BIGINT' => 'SIGNED', 'TEXT' => 'CHAR'][$type];
    }

    protected function endless(): string
    {
        return 'SELECT SLEEP(60)';
    }

    protected function series(int $rows): string
    {
        if (self::isMariaDb()) {
            return "SELECT seq AS n, REPEAT('x', 200) AS pad FROM seq_1_to_10000000 WHERE seq <= {$rows}";
        }
        // MySQL has no sequences, and puts the rows of a recursive query into a table before it sends the first. Nested loops keep the order of the digits.
        $digits = \array_map(static fn(int $power): string => "(VALUES ROW(0), ROW(1), ROW(2), ROW(3), ROW(4), ROW(5), ROW(6), ROW(7), ROW(8), ROW(9)) AS d{$power} (n)", \range(6, 0));
        $number = \implode(' + ', \array_map(static fn(int $power): string => 10 ** $power . " * d{$power}.n", \range(6, 0)));

        return "SELECT /*+ NO_BNL() */ {$number} + 1 AS n, REPEAT('x', 200) AS pad FROM " . \implode(' STRAIGHT_JOIN ', $digits) . " LIMIT {$rows}";
    }

    protected function hasReturning(): bool
    {
        return self::isMariaDb();
    }

    private static function isMariaDb(): bool
    {
        return MysqlProduct::ofServer() === MysqlProduct::MariaDb;
    }

    /** MySQL has no CREATE OR REPLACE TABLE. */
    private function recreate(string $table, string $columns): void
    {
        $this->db->execute("DROP TABLE IF EXISTS {$table}");
        $this->db->execute("CREATE TABLE {$table} ({$columns})");
    }

    // Values only MySQL has

    public static function values(): iterable
    {
        foreach (parent::values() as $name => $value) {
            // No number of MySQL is infinite, and no type of it has an offset.
            if (!\in_array($name, ['infinity', 'timestamp with a zone', 'timestamp whose offset has seconds', 'timestamp whose negative offset has seconds'], true)) {
                yield $name => $value;
            }
        }
        yield 'tinyint' => ['TINYINT', -128];
        yield 'tinyint unsigned' => ['TINYINT UNSIGNED', 255];
        yield 'smallint' => ['SMALLINT', -32768];
        yield 'smallint unsigned' => ['SMALLINT UNSIGNED', 65535];
        yield 'mediumint' => ['MEDIUMINT', -8388608];
        yield 'int unsigned' => ['INT UNSIGNED', 4294967295];
        yield 'bigint unsigned within an int' => ['BIGINT UNSIGNED', \PHP_INT_MAX];
        yield 'bigint unsigned beyond an int is a string' => ['BIGINT UNSIGNED', '18446744073709551615'];
        yield 'decimal as string' => ['DECIMAL(30, 10)', '12345678901234567890.0123456789'];
        yield 'decimal with its scale' => ['DECIMAL(10, 2)', '1.5', '1.50'];
        yield 'decimal from an int' => ['DECIMAL(10, 0)', 7, '7'];
        yield 'float keeps its decimal form' => ['FLOAT', 0.1];
        yield 'int from text' => ['INT', '42', 42];
        yield 'text from an int' => ['VARCHAR(20)', 42, '42'];
        yield 'varchar' => ['VARCHAR(20)', 'Zoë'];
        yield 'varbinary' => ['VARBINARY(20)', "\xff\x00"];
        yield 'binary' => ['BINARY(2)', "\xff\x00"];
        yield 'enum' => ["ENUM('red', 'blue')", Colour::Red, 'red'];
        yield 'set' => ["SET('a', 'b', 'c')", 'a,c'];
        yield 'bit' => ['BIT(10)', 513];
        yield 'one bit' => ['BIT(1)', 1];
        yield 'bit within an int' => ['BIT(64)', \PHP_INT_MAX];
        yield 'smallest bigint' => ['BIGINT', \PHP_INT_MIN];
        yield 'bigint unsigned just beyond an int' => ['BIGINT UNSIGNED', '9223372036854775808'];
        yield 'bigint unsigned zero' => ['BIGINT UNSIGNED', 0];
        yield 'longest decimal' => ['DECIMAL(65, 30)', '-99999999999999999999999999999999999.999999999999999999999999999999'];
        yield 'smallest decimal' => ['DECIMAL(65, 30)', '0.000000000000000000000000000001'];
        yield 'decimal zero' => ['DECIMAL(5, 2)', '-0.00', '0.00'];
        // The last second of MySQL has no fraction, that of MariaDB has one.
        yield 'longest time with a fraction' => ['TIME(6)', '838:59:58.999999'];
        yield 'longest negative time with a fraction' => ['TIME(6)', '-838:59:58.999999'];
        yield 'longest time' => ['TIME', '838:59:59'];
        yield 'longest negative time' => ['TIME', '-838:59:59'];
        yield 'time of more than a day' => ['TIME', '25:00:01'];
        yield 'no time' => ['TIME', '00:00:00'];
        yield 'year zero' => ['YEAR', 0];
        yield 'last year' => ['YEAR', 2155];
        yield 'first date' => ['DATE', '1000-01-01', new \DateTimeImmutable('1000-01-01 00:00:00')];
        yield 'last date' => ['DATE', '9999-12-31', new \DateTimeImmutable('9999-12-31 00:00:00')];
        yield 'last moment' => ['DATETIME(6)', new \DateTimeImmutable('9999-12-31 23:59:59.999999')];
        yield 'JSON number' => ['JSON', '5', 5];
        yield 'JSON null' => ['JSON', 'null', null];
        yield 'empty set' => ["SET('a', 'b', 'c')", ''];
        yield 'the longest that one length byte counts' => ['LONGTEXT', \str_repeat('x', 250)];
        yield 'the shortest that two count' => ['LONGTEXT', \str_repeat('x', 251)];
        yield 'the longest that two count' => ['LONGTEXT', \str_repeat('x', 0xFFFF)];
        yield 'the shortest that three count' => ['LONGTEXT', \str_repeat('x', 0x1_0000)];
        yield 'year' => ['YEAR', 2024];
        yield 'time' => ['TIME', '23:59:59'];
        yield 'time with a fraction' => ['TIME(3)', '-838:59:58.125'];
        yield 'datetime without a fraction' => ['DATETIME', new \DateTimeImmutable('2024-02-29 23:59:59')];
        yield 'timestamp of the server' => ['TIMESTAMP(6) NULL', new \DateTimeImmutable('2024-02-29 23:59:59.5')];
        yield 'list as JSON' => ['JSON', [1, [2, 'x']]];
    }

    /** The type JSON of MariaDB is a text, MySQL's holds numbers as its own types. */
    public function testANumberInJsonIsAsLargeAsTheServerKeepsIt(): void
    {
        $this->db->execute('CREATE TABLE box (held JSON)');
        $this->db->execute("INSERT INTO box VALUES ('[123456789012345678901234567890, 18446744073709551615]')");

        [$number, $unsigned] = $this->db->execute('SELECT held FROM box')->value();
        self::assertSame('18446744073709551615', $unsigned);
        if (self::isMariaDb()) {
            self::assertSame('123456789012345678901234567890', $number);
        } else {
            // The last digit depends on the version.
            self::assertIsFloat($number);
            self::assertEqualsWithDelta(123456789012345678901234567890.0, $number, 1e15);
        }
    }

    /** MySQL cuts white space off the end of a name. */
    public function testColumnsNamedLikeNumbersOrNothingAreFound(): void
    {
        $row = $this->db->execute('SELECT 1 AS "7", 2 AS "-3", 3 AS "07", 4 AS ""')->first();

        self::assertSame([7 => 1, -3 => 2, '07' => 3, '' => 4], $row);
    }

    /** What the binary protocol reads must be what the text protocol reads. */
    public function testValuesAtTheirBoundsAreTheSameWithoutBeingPrepared(): void
    {
        $this->db->execute('CREATE TABLE bounds (u BIGINT UNSIGNED, s BIGINT, d DECIMAL(65, 30), t TIME(6), b BIT(64), z DATE, dt DATETIME(6), f DOUBLE, n INT, y YEAR)');
        $this->db->execute("INSERT INTO bounds VALUES (18446744073709551615, -9223372036854775808, '-1.5', '-838:59:58.999999', b'1111', '9999-12-31', '1000-01-01 00:00:00.000001', 1e308, NULL, 1901)");
        $this->db->execute('CREATE PROCEDURE read_bounds () SELECT * FROM bounds');

        $prepared = $this->db->execute('SELECT * FROM bounds')->first();
        $text = $this->db->execute('CALL read_bounds()')->first();

        self::assertEquals($prepared, $text);
        self::assertSame(['18446744073709551615', \PHP_INT_MIN, '-838:59:58.999999', 15], [$prepared['u'], $prepared['s'], $prepared['t'], $prepared['b']]);
    }

    public function testABooleanColumnThatHoldsAnotherNumberTellsIt(): void
    {
        $this->db->execute('CREATE TABLE flags (flag TINYINT(1))');
        $this->db->executeMany('INSERT INTO flags VALUES (?)', [[0], [1], [5], [-1]]);

        self::assertSame([-1, false, true, 5], $this->db->execute('SELECT flag FROM flags ORDER BY flag')->column());
    }

    public function testADsnMayNameNoDatabase(): void
    {
        $dsn = \preg_replace('~/[^/]*$~', '/', $this->dsn());
        $server = Database::connect((string) $dsn);

        self::assertNull($server->execute('SELECT DATABASE()')->value());
        $server->close();
    }

    public function testAnErrorHasTheNumberOfTheServer(): void
    {
        try {
            $this->db->execute('SELECT * FROM nowhere');
            self::fail('there is such a table');
        } catch (UndefinedTableException $thrown) {
            self::assertSame(1146, $thrown->getCode());
        }
    }

    public function testABitFieldBeyondAnIntIsAString(): void
    {
        self::assertSame('18446744073709551615', $this->bits('b\'' . \str_repeat('1', 64) . '\''));
        self::assertSame(\PHP_INT_MAX, $this->bits('b\'0' . \str_repeat('1', 63) . '\''));
    }

    public function testABitFieldTakesAStringOfDigitsByACast(): void
    {
        $this->recreate('bits', 'b BIT(64)');
        $this->db->execute('INSERT INTO bits VALUES (CAST(CONCAT(?) AS UNSIGNED))', ['18446744073709551615']);

        self::assertSame('18446744073709551615', $this->db->execute('SELECT b FROM bits')->value());
    }

    private function bits(string $literal): int|string
    {
        $this->recreate('bits', 'b BIT(64)');
        $this->db->execute("INSERT INTO bits VALUES ({$literal})");

        return $this->db->execute('SELECT b FROM bits')->value();
    }

    public function testZerosInColumnsOfDatesStayTextWhereTheServerTakesThem(): void
    {
        $this->db->execute('CREATE TABLE zeros (d DATE, t DATETIME(3), s TIMESTAMP NULL)');
        $this->db->transaction(static function (Transaction $tx): void {
            $tx->execute("SET sql_mode = ''");
            $tx->execute('INSERT INTO zeros VALUES (?, ?, ?)', ['0000-00-00', '2024-02-00 01:02:03.004', '0000-00-00 00:00:00']);
        });

        self::assertSame(['d' => '0000-00-00', 't' => '2024-02-00 01:02:03.004', 's' => '0000-00-00 00:00:00'], $this->db->execute('SELECT * FROM zeros')->first());
    }

    public function testADateOfZerosStaysText(): void
    {
        $row = $this->db->transaction(static function (Transaction $tx): ?array {
            $tx->execute("SET sql_mode = ''");

            return $tx->execute("SELECT CAST('0000-00-00' AS DATE) AS d, CAST('2024-00-01 00:00:00' AS DATETIME) AS t")->first();
        });

        self::assertSame(['d' => '0000-00-00', 't' => '2024-00-01 00:00:00'], $row);
    }

    public function testADateThatNoCalendarHasStaysText(): void
    {
        foreach ([[], [1]] as $parameters) {
            $row = $this->db->transaction(static function (Transaction $tx) use ($parameters): ?array {
                $tx->execute("SET sql_mode = 'ALLOW_INVALID_DATES'");
                $tx->execute('CREATE TEMPORARY TABLE odd (d DATE, t DATETIME, leap DATE)');
                $tx->execute("INSERT INTO odd VALUES ('2023-02-31', '2023-04-31 10:00:00', '2024-02-29')");

                return $tx->execute('SELECT * FROM odd' . ($parameters === [] ? '' : ' WHERE 1 = ?'), $parameters)->first();
            });
            self::assertEquals(['d' => '2023-02-31', 't' => '2023-04-31 10:00:00', 'leap' => new \DateTimeImmutable('2024-02-29')], $row);
        }
    }

    public function testAQueryThatBeginsWithACommentIsStreamedFromACursor(): void
    {
        $this->db->transaction(static function (Transaction $tx): void {
            $fetches = static fn (): int => (int) $tx->execute("SHOW SESSION STATUS LIKE 'Com_stmt_fetch'")->first()['Value'];
            foreach (['', '/* report ? */ ', "-- first ?\n# second ?\n", "/**/( /* ? */ "] as $start) {
                $end = \str_contains($start, '(') ? ')' : '';
                $before = $fetches();
                self::assertSame([['n' => 7]], \iterator_to_array($tx->stream("{$start}SELECT ? AS n{$end}", [7])));
                self::assertGreaterThan($before, $fetches(), $start);
            }
        });
    }

    public function testACommentThatTheServerRunsIsNoComment(): void
    {
        $this->db->execute('CREATE TABLE t (a BIGINT)');

        $this->db->transaction(static function (Transaction $tx): void {
            foreach (['/*! INSERT INTO t */ SELECT 1', '/*!50000 INSERT INTO t */ SELECT 2'] as $sql) {
                self::assertSame([], \iterator_to_array($tx->stream($sql)));
            }
        });

        self::assertSame([1, 2], $this->db->execute('SELECT a FROM t ORDER BY a')->column());
    }

    public function testADateKeepsItsWallClockWhateverItsZone(): void
    {
        $this->db->execute('CREATE TABLE clock (at DATETIME(6))');
        $when = new \DateTimeImmutable('2024-07-01 12:00:00.5', new \DateTimeZone('Asia/Kolkata'));

        $this->db->execute('INSERT INTO clock VALUES (?)', [$when]);
        $read = $this->db->execute('SELECT at FROM clock WHERE at = ?', [$when])->value();

        self::assertSame('2024-07-01 12:00:00.500000', $read->format('Y-m-d H:i:s.u'));
        self::assertSame(\date_default_timezone_get(), $read->getTimezone()->getName());
    }

    public function testNumbersMySqlCannotHoldAreRefused(): void
    {
        foreach ([\INF, \NAN, (new \DateTimeImmutable())->setDate(12024, 1, 1)] as $parameter) {
            $error = self::thrown(InvalidParameterException::class, fn () => $this->db->execute('SELECT ?', [$parameter]));
            self::assertStringContainsString('parameter 1', $error->getMessage());
        }
    }

    public function testAValueTheServerCannotReadIsNotShown(): void
    {
        foreach (['INT' => 'secret', 'DATE' => 'secret', "ENUM('red')" => 'secret', 'VARCHAR(3)' => 'secret', 'TINYINT' => 40404] as $type => $value) {
            $this->recreate('box', "held {$type}");
            $error = self::thrown(DataException::class, fn () => $this->db->execute('INSERT INTO box VALUES (?)', [$value]));
            self::assertDoesNotMatchRegularExpression('/secret|404/', $error->getMessage(), $type);
        }
    }

    public function testTheLastAutoIncrementValueIsTold(): void
    {
        $this->db->execute('CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, a INT)');

        self::assertSame(1, $this->db->execute('INSERT INTO t (a) VALUES (?)', [5])->lastInsertId());
        self::assertSame(2, $this->db->transaction(static fn (Transaction $tx) => $tx->execute('INSERT INTO t (a) VALUES (?)', [6])->lastInsertId()));
        self::assertNull($this->db->execute('SELECT 1')->lastInsertId());
    }

    public function testAffectedCountsRowsThatWereFoundEvenIfNothingChangedInThem(): void
    {
        $this->db->execute('CREATE TABLE t (a INT)');
        $this->db->execute('INSERT INTO t VALUES (1), (1)');

        self::assertSame(2, $this->db->execute('UPDATE t SET a = 1')->affected());
    }

    public function testAProcedureReturnsAllItsResults(): void
    {
        $this->db->execute('CREATE PROCEDURE several (n INT) BEGIN SELECT n AS a; SELECT n + 1 AS b, NULL AS c; END');

        $first = $this->db->execute('CALL several(?)', [5]);

        self::assertSame([['a' => 5]], $first->rows());
        self::assertSame([[['b' => 6, 'c' => null]]], \array_map(static fn ($result) => $result->rows(), $first->further()));
        self::assertSame(1, $this->db->execute('SELECT 1')->value());
        self::assertSame([], $this->db->execute('SELECT 1')->further());
    }

    public function testStatementsThatCannotBePreparedRunAsText(): void
    {
        $this->db->execute('CREATE TABLE t (a INT)');

        self::assertSame([], $this->db->execute('LOCK TABLES t READ')->rows());
        self::assertSame(1, $this->db->execute('SELECT 1')->value());
    }

    public function testRowsAndParametersBeyondSixteenMegabytesGoBothWays(): void
    {
        $this->db->execute('CREATE TABLE big (b LONGBLOB)');
        // Packets of 16 MiB - 1 bytes and more are continued by the next, also by an empty one.
        foreach ([(1 << 24) - 20, ...\range((1 << 24) - 8, (1 << 24)), 33 << 20] as $length) {
            $bytes = \random_bytes(1_000) . \str_repeat("\xfe", $length - 1_000);
            $this->db->execute('DELETE FROM big');
            $this->db->execute('INSERT INTO big VALUES (?)', [$bytes]);
            self::assertTrue($this->db->execute('SELECT b FROM big')->value() === $bytes, "{$length} bytes have changed");
        }
    }

    public function testMoreThanTheServerAcceptsIsRefusedBeforeItIsSentAndTheConnectionStays(): void
    {
        $db = $this->connect(new PoolOptions(size: 1));
        $session = $db->execute('SELECT CONNECTION_ID()')->value();

        $error = self::thrown(InvalidParameterException::class, static fn () => $db->execute('SELECT ?', [\str_repeat('x', 65 << 20)]));

        self::assertStringContainsString('max_allowed_packet', $error->getMessage());
        self::assertSame($session, $db->execute('SELECT CONNECTION_ID()')->value());
        $db->close();
    }

    // LOAD DATA LOCAL

    public function testAFileOfThisMachineIsReadOnlyWhereTheDsnAllowsIt(): void
    {
        $file = (string) \tempnam(\sys_get_temp_dir(), 'weft');
        \file_put_contents($file, \implode("\n", \range(1, 100_000)) . "\n");
        $this->db->execute('CREATE TABLE t (a INT)');
        $load = "LOAD DATA LOCAL INFILE '{$file}' INTO TABLE t";

        $error = self::thrown(InsufficientPrivilegeException::class, fn () => $this->db->execute($load));
        self::assertStringContainsString('local_infile=on', $error->getMessage());
        self::assertSame(0, $this->db->execute('SELECT count(*) FROM t')->value());

        $db = Database::connect($this->dsn() . '?local_infile=on', new PoolOptions(size: 1));
        self::assertSame(100_000, $db->execute($load)->affected());
        self::thrown(InvalidParameterException::class, static fn () => $db->execute("LOAD DATA LOCAL INFILE '{$file}.missing' INTO TABLE t"));
        self::assertSame(100_000, $db->execute('SELECT count(*) FROM t')->value());
        $db->close();
        \unlink($file);
    }

    // Round trips

    public function testStatementsOfATransactionShareARoundTripAndTheCommitIsOneMore(): void
    {
        $this->behindProxy(static function (Database $db, Proxy $proxy): void {
            $db->execute('CREATE TABLE t (a BIGINT)');
            $work = static function (Transaction $tx): void {
                foreach (\range(1, 5) as $n) {
                    $tx->execute('INSERT INTO t VALUES (?)', [$n]);
                }
            };
            $db->transaction($work);
            $proxy->trips();

            $db->transaction(static function (Transaction $tx) use ($proxy, $work): void {
                $work($tx);
                self::assertSame(0, $proxy->trips(), 'before the end');
            });
            self::assertSame(2, $proxy->trips(), 'for five INSERTs, then COMMIT');

            $db->transaction(static fn (Transaction $tx) => $tx->execute('INSERT INTO t VALUES (?)', [6]));
            self::assertSame(1, $proxy->trips(), 'for a transaction of one statement');
            self::assertSame(11, $db->execute('SELECT count(*) FROM t')->value());
        });
    }

    public function testACleanSessionCostsNoRoundTripWhenItComesBack(): void
    {
        $this->behindProxy(static function (Database $db, Proxy $proxy): void {
            $db->execute('CREATE TABLE t (a BIGINT)');
            $rounds = static function () use ($db): void {
                $db->execute('INSERT INTO t VALUES (?)', [1]);
                $db->execute('SELECT count(*) FROM t WHERE a = ?', [1]);
                $db->execute('UPDATE t SET a = ?', [1]);
            };
            $rounds();
            $proxy->trips();

            $rounds();
            $rounds();

            self::assertSame(6, $proxy->trips());
        });
    }

    // Sessions

    /** @return iterable<string, array{list<string>, string, mixed}> what is left behind, how one sees it, what a new session sees */
    public static function remains(): iterable
    {
        yield 'a session variable' => [['SET SESSION sort_buffer_size = 65536'], 'SELECT @@sort_buffer_size = 65536', 0];
        yield 'a character set' => [['SET NAMES latin1'], 'SELECT @@character_set_client', 'utf8mb4'];
        yield 'a time zone' => [["SET time_zone = '+09:00'"], 'SELECT @@time_zone', 'SYSTEM'];
        yield 'autocommit' => [['SET autocommit = 0'], 'SELECT @@autocommit', 1];
        yield 'a user variable' => [['SET @weft = 5'], 'SELECT @weft IS NULL', 1];
        yield 'a user variable set by a query' => [['SELECT 5 INTO @weft'], 'SELECT @weft IS NULL', 1];
        yield 'a user variable set by a procedure' => [['CREATE PROCEDURE p () SET @weft = 5', 'CALL p()'], 'SELECT @weft IS NULL', 1];
        yield 'a user variable set by a function' => [
            ['CREATE FUNCTION f () RETURNS INT BEGIN SET @weft = 5; RETURN 1; END', 'SELECT f()'], 'SELECT @weft IS NULL', 1,
        ];
        yield 'a temporary table' => [['CREATE TEMPORARY TABLE left_behind (a INT)'], "SELECT count(*) FROM information_schema.tables WHERE table_name = 'left_behind'", 0];
        yield 'a named lock' => [["SELECT GET_LOCK('weft_left_behind', 0)"], "SELECT IS_USED_LOCK('weft_left_behind') IS NULL", 1];
        yield 'a locked table' => [['CREATE TABLE locked (a INT)', 'LOCK TABLES locked WRITE'], 'SELECT count(*) FROM information_schema.metadata_lock_info', null];
        yield 'another database' => [['USE information_schema'], "SELECT DATABASE() LIKE 'weft_sql_%'", 1];
        yield 'a variable set in a block' => [['BEGIN NOT ATOMIC SET SESSION sort_buffer_size = 65536; END'], 'SELECT @@sort_buffer_size = 65536', 0];
        yield 'a statement prepared in a block' => [["BEGIN NOT ATOMIC PREPARE weft FROM 'SELECT 1'; END"], 'EXECUTE weft', SqlException::class];
        yield 'a prepared statement' => [["PREPARE weft FROM 'SELECT 1'"], 'EXECUTE weft', SqlException::class];
    }

    /**
     * @dataProvider remains
     *
     * @param list<string> $statements
     */
    #[DataProvider('remains')]
    public function testStateOfASessionIsInvisibleToTheNextBorrower(array $statements, string $look, mixed $expected): void
    {
        if (\str_starts_with($statements[0], 'BEGIN NOT ATOMIC') && !self::isMariaDb()) {
            self::markTestSkipped('MySQL has no blocks outside of procedures');
        }
        $db = $this->connect(new PoolOptions(size: 1));
        $session = $db->execute('SELECT CONNECTION_ID()')->value();
        foreach ($statements as $statement) {
            try {
                $db->execute($statement);
            } catch (UsageError) {
                self::assertSame('SET autocommit = 0', $statement);
            }
        }

        if ($expected === null) {
            $db->execute('CREATE TABLE another (a INT)');
        } elseif (\is_string($expected) && \class_exists($expected)) {
            self::thrown($expected, static fn () => $db->execute($look));
        } else {
            self::assertSame($expected, $db->execute($look)->value());
        }
        self::assertSame($session, $db->execute('SELECT CONNECTION_ID()')->value(), 'the connection was not closed for it');
        self::assertSame("Zoë 𝄞", $db->execute("SELECT CONCAT(?, '𝄞')", ['Zoë '])->value());
        $db->close();
    }

    /**
     * @dataProvider remains
     *
     * @param list<string> $statements
     */
    #[DataProvider('remains')]
    public function testStateOfATransactionIsInvisibleToTheNextBorrower(array $statements, string $look, mixed $expected): void
    {
        if (\str_starts_with($statements[0], 'BEGIN NOT ATOMIC') && !self::isMariaDb()) {
            self::markTestSkipped('MySQL has no blocks outside of procedures');
        }
        $db = $this->connect(new PoolOptions(size: 1));
        $session = $db->execute('SELECT CONNECTION_ID()')->value();
        $last = \array_pop($statements);
        foreach ($statements as $statement) {
            $db->execute($statement);
        }
        $leave = static function (bool $commits) use ($db, $last): void {
            $tx = $db->begin();
            try {
                $tx->execute($last)->rows();
                $commits ? $tx->commit() : null;
            } catch (UsageError) {
                self::assertContains($last, ['SET autocommit = 0', 'LOCK TABLES locked WRITE'], 'commits implicitly');
            }
        };

        foreach ([true, false] as $commits) {
            $leave($commits);
            if ($expected === null) {
                $db->execute('DROP TABLE IF EXISTS another');
                $db->execute('CREATE TABLE another (a INT)');
            } elseif (\is_string($expected) && \class_exists($expected)) {
                self::thrown($expected, static fn () => $db->execute($look));
            } else {
                self::assertSame($expected, $db->execute($look)->value());
            }
            self::assertSame($session, $db->execute('SELECT CONNECTION_ID()')->value(), 'the connection was not closed for it');
        }
        $db->close();
    }

    public function testAnOpenTransactionIsInvisibleToTheNextBorrower(): void
    {
        $this->items();
        $db = $this->connect(new PoolOptions(size: 1));
        $tx = $db->begin();
        self::assertSame(1, $tx->execute("INSERT INTO items (id, name) VALUES (1, 'one')")->affected());
        unset($tx);

        $open = self::isMariaDb() ? 'SELECT @@in_transaction' : 'SELECT count(*) FROM information_schema.innodb_trx WHERE trx_mysql_thread_id = CONNECTION_ID()';
        self::assertSame(0, $db->execute($open)->value());
        self::assertSame(0, $db->execute('SELECT count(*) FROM items')->value());
        $db->close();
    }

    public function testASessionLeftInsideATransactionObjectIsCleanedAfterIt(): void
    {
        $db = $this->connect(new PoolOptions(size: 1));
        $db->transaction(static function (Transaction $tx): void {
            $tx->execute('SET @weft = 5');
            self::assertSame(5, $tx->execute('SELECT @weft')->value());
        });

        self::assertNull($db->execute('SELECT @weft')->value());
        $db->close();
    }

    // Transactions

    public function testAStatementThatBeginsEndsOrCommitsATransactionIsRefusedThere(): void
    {
        $this->items();
        foreach (['BEGIN', 'START TRANSACTION', 'COMMIT', 'ROLLBACK', 'CREATE TABLE other (a INT)'] as $statement) {
            self::thrown(UsageError::class, fn () => $this->db->transaction(static function (Transaction $tx) use ($statement): void {
                $tx->execute('SELECT count(*) FROM items')->value();
                $tx->execute($statement);
            }));
        }
        $error = self::thrown(UsageError::class, fn () => $this->db->execute('START TRANSACTION'));
        self::assertStringContainsString('transaction', $error->getMessage());
        self::assertSame([], $this->names());
    }

    public function testAStatementThatWouldCommitItsTransactionIsNotRunEvenAsTheFirst(): void
    {
        $this->items();
        foreach (['CREATE TABLE never (a INT)', 'ALTER TABLE items ADD never INT', 'TRUNCATE items', 'DROP TABLE items', 'LOCK TABLES items WRITE', 'ANALYZE TABLE items', 'FLUSH TABLES', "ALTER TABLE items ADD never INT COMMENT 'temporary'", '/*!50000 TRUNCATE items */', 'SET autocommit = 1'] as $statement) {
            $error = self::thrown(UsageError::class, fn () => $this->db->transaction(static function (Transaction $tx) use ($statement): void {
                $tx->execute($statement);
                $tx->execute("INSERT INTO items (id, name) VALUES (1, 'one')");
            }));
            self::assertStringContainsString("would commit its transaction, as CREATE, ALTER, LOCK TABLES and similar statements do in MySQL; run it before or after the transaction [statement: $statement", $error->getMessage());
        }

        self::assertSame([], $this->names());
        self::assertSame(0, $this->db->execute("SELECT count(*) FROM information_schema.columns WHERE table_schema = database() AND 'never' IN (table_name, column_name)")->value());
    }

    public function testARefusedStatementCommitsNothingThatWasSentBefore(): void
    {
        $this->items();
        $this->db->execute('CREATE TABLE temporary_imports (a INT)');
        foreach (['LOCK TABLES items WRITE', 'TRUNCATE TABLE temporary_imports', 'CHECK TABLE items', "EXECUTE IMMEDIATE 'LOCK TABLES items WRITE'"] as $statement) {
            self::thrown(UsageError::class, fn () => $this->db->transaction(static function (Transaction $tx) use ($statement): void {
                $tx->execute("INSERT INTO items (id, name) VALUES (1, 'one')")->affected();
                $tx->execute($statement);
            }));
            self::assertSame([], $this->names(), $statement);
        }
        $this->db->transaction(function (Transaction $tx): void {
            $tx->execute("INSERT INTO items (id, name) VALUES (1, 'one')");
            $tx->execute('CREATE TEMPORARY TABLE imports (a INT)');
            $tx->execute('DROP TEMPORARY TABLE imports');
        });
        self::assertSame(['one'], $this->names());
    }

    public function testTheIsolationLevelIsSetByTheFirstStatement(): void
    {
        $this->items();
        $tx = $this->db->begin();
        $tx->execute('SET TRANSACTION ISOLATION LEVEL READ COMMITTED');
        self::assertSame(0, $tx->execute('SELECT count(*) FROM items')->value());
        $this->db->execute("INSERT INTO items (id, name) VALUES (1, 'one')");
        self::assertSame(1, $tx->execute('SELECT count(*) FROM items')->value(), 'a committed row is seen');
        $tx->commit();
    }

    public function testADeadlockInANestedTransactionStaysTheFailureOfTheWhole(): void
    {
        $this->assertOneOfTwoDeadlocks(static function (Transaction $tx, int $second): void {
            try {
                $tx->transaction(static fn (Transaction $inner) => $inner->execute('UPDATE items SET price = 2 WHERE id = ?', [$second])->affected());
            } catch (DeadlockException) {
                // As the code does that takes a failed savepoint for an undone step.
            }
        });
    }

    public function testADeadlockHasItsClassAndNothingSentBehindItTakesEffect(): void
    {
        $this->assertOneOfTwoDeadlocks(static function (Transaction $tx, int $second): void {
            $tx->execute('UPDATE items SET price = 2 WHERE id = ?', [$second]);
        });
    }

    /** @param \Closure(Transaction, int): void $cross takes the lock of the row that the other transaction holds */
    private function assertOneOfTwoDeadlocks(\Closure $cross): void
    {
        $this->items();
        $this->db->execute("INSERT INTO items (id, name) VALUES (1, 'one'), (2, 'two')");

        run(function () use ($cross): void {
            $locked = new \ArrayObject();
            $update = fn (int $first, int $second) => fn () => $this->db->transaction(static function (Transaction $tx) use ($first, $second, $locked, $cross): void {
                $tx->execute('UPDATE items SET price = 1 WHERE id = ?', [$first])->affected();
                $locked->append(true);
                self::eventually(static fn (): bool => \count($locked) === 2, 'each has one of the locks');
                $cross($tx, $second);
                $tx->execute('INSERT INTO items (id, name) VALUES (?, ?)', [100 + $first, "behind {$first}"]);
            });
            $outcomes = self::outcomes($update(1, 2), $update(2, 1));
            self::assertContains(DeadlockException::class, $outcomes);
            self::assertContains(null, $outcomes);
        });
        self::assertSame(3, $this->db->execute('SELECT count(*) FROM items')->value());
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
        // In MySQL the end of its time is none of SLEEP()'s errors.
        $limited = self::isMariaDb()
            ? 'SET STATEMENT max_statement_time = 0.05 FOR SELECT SLEEP(10)'
            : "SELECT /*+ MAX_EXECUTION_TIME(50) */ sum(n) FROM ({$this->series(10_000_000)}) AS numbers";
        $error = self::thrown(StatementCancelledException::class, fn () => $this->db->execute($limited));
        self::assertSame('57014', $error->sqlState);
    }

    // Cancellation and loss

    public function testAfterARestartOfTheServerTheNextStatementConnectsAgain(): void
    {
        $services = \getenv('WEFT_SERVICES');
        if ($services === false) {
            self::markTestSkipped('the server is not one of scripts/services');
        }
        self::assertSame(1, $this->db->execute('SELECT 1')->value());
        \exec("{$services} restart mariadb 2>&1", $output, $code);
        self::assertSame(0, $code, \implode("\n", $output));

        self::assertSame(1, $this->db->execute('SELECT 1')->value());
    }

    // Connecting

    public function testEveryAuthenticationPluginOfTheServerLetsOneIn(): void
    {
        // By sha256_password a client sends its password at each log-in, so the server has to be the right one.
        $servers = self::isMariaDb() ? ['weft' => self::server(), 'weft_ed25519' => self::server()] : ['weft' => self::server(), 'weft_sha256' => self::tlsServer()];
        foreach ($servers as $user => $server) {
            $db = Database::connect(\str_replace('//weft:', "//{$user}:", $server));
            self::assertStringStartsWith("{$user}@", $db->execute('SELECT CURRENT_USER()')->value());
            $db->close();
        }
    }

    /** @return iterable<string, array{string, string}> plugin and way to the server */
    public static function firstLogins(): iterable
    {
        foreach (['caching_sha2_password', 'sha256_password'] as $plugin) {
            yield "{$plugin} over TLS that is verified" => [$plugin, 'tls'];
            yield "{$plugin} over a socket" => [$plugin, 'socket'];
            yield "{$plugin} by RSA with the key of the DSN" => [$plugin, 'key'];
            yield "{$plugin} by RSA with the key that the server sends, where that is allowed" => [$plugin, 'unverified'];
        }
    }

    /**
     * MySQL has no hash of a new user's password in its cache.
     *
     * @dataProvider firstLogins
     */
    #[DataProvider('firstLogins')]
    public function testTheFirstLogInOfAUserSendsThePasswordOnlyToTheRightServer(string $plugin, string $way): void
    {
        if (self::isMariaDb()) {
            self::markTestSkipped("{$plugin} is a plugin of MySQL");
        }
        $user = 'weft_login_' . \bin2hex(\random_bytes(4));
        $key = (string) \tempnam(\sys_get_temp_dir(), 'weft');
        $status = $plugin === 'sha256_password' ? 'Rsa_public_key' : 'Caching_sha2_password_rsa_public_key';
        \file_put_contents($key, $this->db->execute("SHOW STATUS LIKE '{$status}'")->first()['Value']);
        $this->db->execute("CREATE USER {$user}@'%' IDENTIFIED WITH {$plugin} BY 'Zoë, longer than the scramble'");
        try {
            $connect = static fn(string $server, string $password = 'Zoë, longer than the scramble'): Database
                => Database::connect(\str_replace(['//weft:weft@', '/weft?'], ["//{$user}:" . \rawurlencode($password) . '@', '/?'], $server), new PoolOptions(size: 1));
            $server = match ($way) {
                'tls' => self::tlsServer(),
                'socket' => 'mysql://weft:weft@/weft?host=' . \rawurlencode((string) \getenv('WEFT_MYSQL_SOCKET')),
                'key' => self::server() . "?sslmode=disable&server_public_key={$key}",
                'unverified' => self::server() . '?sslmode=disable&allow_unverified_server=on',
            };

            foreach ([self::server() . '?', self::server() . '?sslmode=disable'] as $unknown) {
                $error = self::thrown(AuthenticationException::class, static fn () => $connect($unknown)->execute('SELECT 1'));
                self::assertStringContainsString("\"{$plugin}\": that sends it the password", $error->getMessage());
            }
            $error = self::thrown(AuthenticationException::class, static fn () => $connect($server, 'hunter2')->execute('SELECT 1'));
            self::assertStringContainsString('(error 1045)', $error->getMessage());
            self::assertStringNotContainsString('hunter2', (string) $error);
            $db = $connect($server);
            self::assertSame("{$user}@%", $db->execute('SELECT CURRENT_USER()')->value());
            $db->close();
            if ($plugin === 'caching_sha2_password') {
                $db = $connect(self::server() . '?sslmode=disable');
                self::assertSame("{$user}@%", $db->execute('SELECT CURRENT_USER()')->value(), 'by the hash in the cache');
                $db->close();
            }
        } finally {
            $this->db->execute("DROP USER {$user}@'%'");
            \unlink($key);
        }
    }

    public function testAnExpiredPasswordIsAFailureToAuthenticate(): void
    {
        if (self::isMariaDb()) {
            self::markTestSkipped('MariaDB lets such a user in by default, for a new password');
        }
        $user = 'weft_expired_' . \bin2hex(\random_bytes(4));
        $this->db->execute("CREATE USER {$user}@'%' IDENTIFIED BY 'weft' PASSWORD EXPIRE");
        try {
            $error = self::thrown(AuthenticationException::class, static fn () => Database::connect(\str_replace('//weft:', "//{$user}:", self::tlsServer()))->execute('SELECT 1'));
            self::assertStringContainsString('(error 1862)', $error->getMessage());
        } finally {
            $this->db->execute("DROP USER {$user}@'%'");
        }
    }

    public function testASocketWorksLikeAPort(): void
    {
        $socket = (string) \getenv('WEFT_MYSQL_SOCKET');
        if (!\file_exists($socket)) {
            self::markTestSkipped('the server has no socket here');
        }
        $db = Database::connect('mariadb://weft:weft@/weft?host=' . \rawurlencode($socket));

        self::assertSame('weft@localhost', $db->execute('SELECT USER()')->value());
        $db->close();
    }

    public function testTlsIsUsedWhereTheServerOffersItAndCheckedWhereTheDsnSaysSo(): void
    {
        $dsn = self::tlsServer();
        $cipher = static function (string $dsn): string {
            $db = Database::connect($dsn);
            $cipher = $db->execute("SHOW STATUS LIKE 'Ssl_cipher'")->first()['Value'];
            $db->close();

            return $cipher;
        };

        self::assertNotSame('', $cipher($dsn));
        self::assertNotSame('', $cipher(self::server()), 'preferred by default');
        self::assertSame('', $cipher(self::server() . '?sslmode=disable'));
        self::assertNotSame('', $cipher(\str_replace('//weft:', '//weft_tls:', $dsn)));
        foreach (['/&sslrootcert=[^&]*/' => '', '/sslmode=[^&]*&sslrootcert=[^&]*/' => 'sslrootcert=system'] as $part => $replacement) {
            $noAuthority = Database::connect((string) \preg_replace($part, $replacement, $dsn));
            self::thrown(TlsException::class, static fn () => $noAuthority->execute('SELECT 1'));
        }
    }

    private static function tlsServer(): string
    {
        $dsn = \getenv('WEFT_MYSQL_TLS_DSN');
        self::assertNotFalse($dsn, 'WEFT_MYSQL_TLS_DSN is not set: run `make services`');

        return $dsn;
    }

    public function testALoadedFileIsReadWhileOtherTasksGoOn(): void
    {
        $pipe = \sys_get_temp_dir() . '/weft-load-' . \bin2hex(\random_bytes(6));
        \posix_mkfifo($pipe, 0o600);
        $db = Database::connect($this->dsn() . '?local_infile=on', new PoolOptions(size: 1));
        try {
            $loaded = run(static function () use ($db, $pipe): int {
                return $db->transaction(static function (Transaction $tx) use ($pipe): int {
                    $tx->execute('CREATE TEMPORARY TABLE loaded (n INT)');
                    $load = async(static fn (): int => $tx->execute("LOAD DATA LOCAL INFILE '{$pipe}' INTO TABLE loaded")->affected());
                    // Nobody writes to the pipe before this task goes on.
                    delay(0.1);
                    $writer = \proc_open(['sh', '-c', 'printf "1\\n2\\n" > "$0"', $pipe], [], $pipes);
                    self::assertIsResource($writer);
                    $rows = $load->await();
                    \proc_close($writer);

                    return $rows;
                });
            });
            self::assertSame(2, $loaded);
        } finally {
            $db->close();
            \unlink($pipe);
        }
    }
}
