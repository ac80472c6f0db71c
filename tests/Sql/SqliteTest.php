<?php

declare(strict_types=1);

namespace Weft\Tests\Sql;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Sql\FileNotOpenedException;
use Weft\Sql\Database;
use Weft\Sql\LockNotAvailableException;
use Weft\Sql\InvalidParameterException;
use Weft\Sql\SqlException;
use Weft\Sql\Transaction;
use Weft\Sql\UndefinedTableException;
use Weft\Tests\Extension;
use Weft\UsageError;

use function Weft\async;
use function Weft\delay;
use function Weft\run;
use function Weft\timeout;

class SqliteTest extends SqlConformance
{
    private string $file;

    protected function setUp(): void
    {
        $this->file = \sys_get_temp_dir() . '/weft-sql-' . \bin2hex(\random_bytes(6)) . '.db';
        parent::setUp();
    }

    protected function tearDown(): void
    {
        parent::tearDown();
        foreach (['', '-wal', '-shm'] as $suffix) {
            @\unlink($this->file . $suffix);
        }
    }

    protected function dsn(): string
    {
        return "sqlite://{$this->file}";
    }

    protected function type(string $type): string
    {
        return ['bytes' => 'BLOB', 'float' => 'REAL', 'indexed text' => 'TEXT'][$type] ?? $type;
    }

    public static function values(): iterable
    {
        yield from parent::values();
        yield 'what a JSON column holds that is no JSON' => ['JSON', '{broken'];
        yield 'what a date column holds that is no date' => ['DATE', 'now'];
        yield 'the 31st of February' => ['DATE', '2023-02-31'];
        yield 'a date of zeros' => ['DATETIME', '0000-00-00 00:00:00'];
        yield 'a month that no year has' => ['DATETIME', '2023-13-01T10:00:00Z'];
        yield 'the 29th of February of a leap year' => ['DATE', '2024-02-29', new \DateTimeImmutable('2024-02-29')];
        yield 'an hour that no day has' => ['DATETIME', '2024-02-29 24:00:00'];
        yield 'a time without seconds' => ['DATETIME', '2024-02-29 12:30', new \DateTimeImmutable('2024-02-29 12:30:00')];
        yield 'nanoseconds' => ['DATETIME', '2024-02-29 23:59:59.999999999', new \DateTimeImmutable('2024-02-29 23:59:59.999999')];
        yield 'what a bool column holds that is no bool' => ['BOOLEAN', 7];
        yield 'a list is JSON text where no JSON is declared' => ['TEXT', [1, 'a'], '[1,"a"]'];
        yield 'a map is JSON text where no JSON is declared' => ['TEXT', ['a' => 1], '{"a":1}'];
        yield 'decimals are numbers' => ['NUMERIC', '1.50', 1.5];
    }

    public function testNotANumberIsRefusedSinceSqliteWouldStoreNull(): void
    {
        $error = self::thrown(InvalidParameterException::class, fn () => $this->db->execute('SELECT ?', [\NAN]));

        self::assertStringContainsString('parameter 1', $error->getMessage());
    }

    public function testTheLastInsertIdIsTheStatementSOwn(): void
    {
        $this->items();

        self::assertSame(7, $this->db->execute('INSERT INTO items (id, name) VALUES (7, ?)', ['seven'])->lastInsertId());
        self::assertSame(8, $this->db->execute('INSERT INTO items (name) VALUES (?)', ['eight'])->lastInsertId());
        self::assertNull($this->db->execute('UPDATE items SET price = 1')->lastInsertId());
        self::assertNull($this->db->execute('SELECT 1')->lastInsertId());
    }

    public function testALockOfAnotherProcessHasItsClass(): void
    {
        $this->items();
        $other = $this->otherProcess();
        $other('BEGIN IMMEDIATE');
        $this->db->close();
        $this->db = Database::connect($this->dsn() . '?busy_timeout=0.1');

        $error = self::thrown(LockNotAvailableException::class, fn () => $this->db->execute('INSERT INTO items (id, name) VALUES (1, ?)', ['one']));
        self::assertSame('55P03', $error->sqlState);
        self::assertSame([], $this->names());
        $other('ROLLBACK');
        $this->db->execute('INSERT INTO items (id, name) VALUES (1, ?)', ['one']);

        self::assertSame(['one'], $this->names());
    }

    public function testACommitOfAnotherProcessEndsTheWaitForAChange(): void
    {
        $this->items();
        $other = $this->otherProcess();

        timeout(60.0, function () use ($other): void {
            $wait = async($this->db->waitForChange(...));
            delay(0.1);
            self::assertFalse($wait->isDone());
            $other("INSERT INTO items (id, name) VALUES (1, 'one')");
            $wait->await();
        });

        self::assertSame(['one'], $this->names());
    }

    public function testATransactionThatWaitsKeepsTheWriterUntilItTimesOut(): void
    {
        $this->items();
        $this->db->close();
        $this->db = Database::connect($this->dsn() . '?transaction_timeout=0.2');
        $tx = $this->db->begin();
        $tx->execute('INSERT INTO items (id, name) VALUES (1, ?)', ['one'])->affected();

        run(fn () => async(fn () => $this->db->execute('INSERT INTO items (id, name) VALUES (2, ?)', ['two']))->await());
        $error = self::thrown(SqlException::class, static fn () => $tx->commit());

        self::assertSame('25P04', $error->sqlState);
        self::assertSame(['two'], $this->names());
    }

    /**
     * @dataProvider statementsThatNeedTheWriter
     *
     * @param \Closure(Database): mixed $write
     */
    #[DataProvider('statementsThatNeedTheWriter')]
    public function testATaskWhoseTransactionHoldsTheWriterCannotWriteBesideIt(\Closure $write): void
    {
        $this->items();
        $this->db->execute("INSERT INTO items (id, name) VALUES (1, 'one')");
        $other = Database::connect($this->dsn());

        foreach ([$this->db, $other] as $database) {
            $tx = $this->db->begin();
            $tx->execute('SELECT 1')->value();
            $error = self::thrown(UsageError::class, static fn () => $write($database));
            $tx->execute("UPDATE items SET name = 'kept' WHERE id = 1");
            $tx->commit();

            self::assertStringContainsString('cannot run while a transaction of the same task is open. SQLite has one writer, and that transaction holds it', $error->getMessage());
            self::assertSame(['kept'], $this->names());
            $write($database);
            $this->db->execute('DELETE FROM items WHERE id > 1');
        }
        $other->close();
    }

    /** @return iterable<string, array{\Closure(Database): mixed}> */
    public static function statementsThatNeedTheWriter(): iterable
    {
        foreach (["INSERT INTO items (id, name) VALUES (2, 'two')", "WITH a (n) AS (SELECT 'delete from') INSERT INTO items (id, name) SELECT 2, n FROM a", 'CREATE TABLE IF NOT EXISTS others (a)', '/* all */ DELETE FROM items WHERE id > 1'] as $sql) {
            yield $sql => [static fn (Database $database) => $database->execute($sql)];
        }
        yield 'transaction()' => [static fn (Database $database) => $database->transaction(static fn (Transaction $tx) => $tx->execute("INSERT INTO items (id, name) VALUES (2, 'two')"))];
        yield 'transaction() with an answer' => [static fn (Database $database) => $database->transaction(static fn (Transaction $tx) => $tx->execute('SELECT 1')->value())];
        yield 'executeMany()' => [static fn (Database $database) => $database->executeMany('INSERT INTO items (id, name) VALUES (?, ?)', [[2, 'two'], [3, 'three']])];
    }

    public function testWhatDoesNotNeedTheWriterRunsBesideATransaction(): void
    {
        $this->items();
        $tx = $this->db->begin();
        $tx->execute("INSERT INTO items (id, name) VALUES (1, 'one')");
        $this->db->execute("INSERT INTO items (id, name) VALUES (2, 'before the transaction has sent anything')");
        $tx->execute('SELECT 1')->value();

        foreach (['SELECT 1 FROM items', "WITH a AS (SELECT replace('insert into', 'a', 'b')) SELECT 1 FROM items", '-- DELETE FROM items' . "\n VALUES (1)"] as $sql) {
            self::assertSame(1, $this->db->execute($sql)->value(), $sql);
        }
        run(function () use ($tx): void {
            $waiting = async(fn () => $this->db->execute("INSERT INTO items (id, name) VALUES (3, 'another task waits')"));
            delay(0.01);
            self::assertFalse($waiting->isDone());
            $tx->rollback();
            $waiting->await();
        });
        self::assertSame([2, 3], $this->db->execute('SELECT id FROM items ORDER BY id')->column());

        $dropped = $this->db->begin();
        $dropped->execute('SELECT 1')->value();
        unset($dropped);
        $this->db->execute('DELETE FROM items');
        self::assertSame([], $this->names());
    }

    public function testADatabaseInMemoryIsNotReadBesideATransactionOfTheTask(): void
    {
        $database = Database::connect('sqlite::memory:');
        $tx = $database->begin();
        $tx->execute('CREATE TABLE t (a)')->affected();

        foreach ([static fn () => $database->execute('SELECT 1'), static fn () => \iterator_to_array($database->stream('SELECT 1'))] as $read) {
            self::assertStringContainsString('Database ":memory:": the statement cannot run', self::thrown(UsageError::class, $read)->getMessage());
        }
        $tx->commit();
        self::assertSame([], $database->execute('SELECT a FROM t')->column());
        $database->close();
    }

    public function testOnlyAQueryCanBeStreamed(): void
    {
        $this->items();

        self::thrown(UsageError::class, fn () => \iterator_to_array($this->db->stream("INSERT INTO items (id, name) VALUES (1, 'x') RETURNING id")));
    }

    public function testAnAnsweredCommitSurvivesTheDeathOfTheProcess(): void
    {
        $this->items();
        $program = \sprintf(
            '$db = \Weft\Sql\Database::connect(%s); for ($n = 1; ; $n++) { '
            . '$db->execute("INSERT INTO items (id, name) VALUES (?, ?)", [$n, "item $n"]); echo "$n\n"; }',
            \var_export($this->dsn(), true),
        );
        $process = self::weft($program, $pipes);
        $answered = 0;
        while ($answered < 50) {
            $answered = (int) \fgets($pipes[1]);
        }
        \posix_kill(\proc_get_status($process)['pid'], \SIGKILL);
        while (($line = \fgets($pipes[1])) !== false) {
            $answered = (int) $line;
        }
        \proc_close($process);

        self::assertGreaterThanOrEqual($answered, $this->db->execute('SELECT max(id) FROM items')->value());
        self::assertSame('ok', $this->db->execute('PRAGMA integrity_check')->value());
    }

    public function testADatabaseInMemoryIsItsOwnerSAlone(): void
    {
        $one = Database::connect('sqlite::memory:');
        $two = Database::connect('sqlite::memory:');
        $one->execute('CREATE TABLE t (a)');

        self::thrown(UndefinedTableException::class, static fn () => $two->execute('SELECT * FROM t'));
        self::assertSame([1, 2, 3], \array_column(\iterator_to_array($one->stream('SELECT 1 AS n UNION SELECT 2 UNION SELECT 3', chunk: 2)), 'n'));
        $one->close();
        $two->close();
    }

    public function testAFileThatCannotBeOpenedIsNamed(): void
    {
        \file_put_contents($this->file . '.txt', \str_repeat('no database ', 1_000));
        try {
            foreach (['/no/such/directory/a.db' => 'does not exist', '/proc/weft.db' => 'cannot be created', \sys_get_temp_dir() => 'directory', $this->file . '.txt' => 'not an SQLite database'] as $file => $reason) {
                $error = self::thrown(FileNotOpenedException::class, static fn () => Database::connect("sqlite://{$file}"));
                self::assertStringContainsString($file, $error->getMessage());
                self::assertStringContainsString($reason, $error->getMessage());
            }
        } finally {
            \unlink($this->file . '.txt');
        }
    }

    public function testAResultThatPhpReadsLeavesNoMemoryBehind(): void
    {
        // A process of its own, in which nothing has called the functions that read: the first call from PHP changes what a call needs.
        $code = <<<'PHP'
            $database = Weft\Sql\Database::connect('sqlite:' . getenv('FILE'));
            $database->execute('CREATE TABLE kept (at TIMESTAMP, doc JSON)');
            $database->execute("INSERT INTO kept VALUES ('2024-01-02T03:04:05+00:00', '{\"a\": 1}')");
            $taken = [];
            foreach ([100, 2000, 2000] as $times) {
                $before = memory_get_usage();
                for ($i = 0; $i < $times; ++$i) {
                    $database->execute('SELECT at, doc FROM kept')->first();
                }
                $taken[] = memory_get_usage() - $before;
            }
            echo end($taken);
            PHP;
        \putenv("FILE={$this->file}");
        try {
            $process = self::weft($code, $pipes);
            self::assertSame('0', \stream_get_contents($pipes[1]), 'bytes');
            self::assertSame(0, \proc_close($process));
        } finally {
            \putenv('FILE');
        }
    }

    public static function wrongDsns(): iterable
    {
        yield from parent::wrongDsns();
        yield 'no file' => ['sqlite:'];
        yield 'host' => ['sqlite://host/a.db'];
        yield 'unknown option' => ['sqlite:a.db?colour=red'];
        yield 'no number' => ['sqlite:a.db?readers=many'];
    }

    /**
     * Another process that has the file open; in the same process a second SQLite library would not see our locks.
     *
     * @return \Closure(string): void runs a statement there
     */
    private function otherProcess(): \Closure
    {
        $program = '$db = new PDO($argv[1]); while ($sql = fgets(STDIN)) { $db->exec($sql); echo "done\n"; }';
        $process = \proc_open([\PHP_BINARY, '-r', $program, "sqlite:{$this->file}"], [['pipe', 'r'], ['pipe', 'w']], $pipes);
        self::assertIsResource($process);

        return static function (string $sql) use ($process, $pipes): void {
            \fwrite($pipes[0], "{$sql}\n");
            self::assertSame("done\n", \fgets($pipes[1]), "process of {$process}");
        };
    }

    /**
     * Runs code in a process of its own that has the extension as this one has it.
     *
     * @param array<int, resource>|null $pipes
     *
     * @return resource
     */
    private static function weft(string $code, ?array &$pipes)
    {
        $autoload = \var_export(\dirname(__DIR__, 2) . '/autoload.php', true);
        $process = \proc_open([\PHP_BINARY, '-d', 'extension=' . Extension::library(), '-r', "require {$autoload}; {$code}"], [1 => ['pipe', 'w']], $pipes);
        self::assertIsResource($process);

        return $process;
    }

    protected function endless(): string
    {
        return 'WITH RECURSIVE forever (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM forever) SELECT max(n) FROM forever';
    }

    protected function series(int $rows): string
    {
        return "WITH RECURSIVE series (n) AS (SELECT 1 WHERE $rows > 0 UNION ALL SELECT n + 1 FROM series WHERE n < $rows)"
            . " SELECT n, printf('%.*c', 200, 'x') AS pad FROM series";
    }
}
