<?php

declare(strict_types=1);

namespace Weft\Tests\Sql;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Pool\PoolOptions;
use Weft\Pool\Timeouts;
use Weft\Sql\CheckViolationException;
use Weft\Sql\Database;
use Weft\Sql\ForeignKeyViolationException;
use Weft\InvalidDsnError;
use Weft\Sql\NotNullViolationException;
use Weft\Sql\InvalidParameterException;
use Weft\Pool\PoolClosedException;
use Weft\Sql\SqlException;
use Weft\Sql\SyntaxErrorException;
use Weft\Sql\Transaction;
use Weft\Sql\UndefinedColumnException;
use Weft\Sql\UndefinedTableException;
use Weft\Sql\UniqueViolationException;
use Weft\UsageError;

/** What an error says, and what is refused, for {@see SqlConformance}. */
trait ErrorConformance
{
    /** @return iterable<string, array{class-string<SqlException>, string, string, array<int|string, mixed>}> */
    public static function mistakes(): iterable
    {
        yield 'unique' => [UniqueViolationException::class, '23505', 'INSERT INTO items (id, name) VALUES (?, ?)', [8, 'secret']];
        yield 'primary key' => [UniqueViolationException::class, '23505', 'INSERT INTO items (id, name) VALUES (?, ?)', [777, 'secret-2']];
        yield 'foreign key' => [ForeignKeyViolationException::class, '23503', 'INSERT INTO items (id, name, parent) VALUES (?, ?, ?)', [8, 'secret-2', 4711]];
        yield 'not null' => [NotNullViolationException::class, '23502', 'INSERT INTO items (id, name, price) VALUES (?, ?, ?)', [8, null, 4711]];
        yield 'check' => [CheckViolationException::class, '23514', 'INSERT INTO items (id, name, price) VALUES (?, ?, ?)', [8, 'secret-2', -4711]];
        yield 'syntax' => [SyntaxErrorException::class, '42601', 'SELEC ?', ['secret']];
        yield 'undefined table' => [UndefinedTableException::class, '42P01', 'SELECT * FROM nowhere WHERE a = ?', ['secret']];
        yield 'undefined column' => [UndefinedColumnException::class, '42703', 'SELECT missing FROM items WHERE name = ?', ['secret']];
    }

    /**
     * @dataProvider mistakes
     *
     * @param class-string<SqlException> $class
     * @param array<int|string, mixed> $parameters
     */
    #[DataProvider('mistakes')]
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

        $error = self::thrown(UniqueViolationException::class, fn () => $this->db->execute('INSERT INTO items (id, name) VALUES (2, ?)', ['one']));
        self::assertContains($error->constraint, ['items_name_key', 'items.name', 'name']);
        $error = self::thrown(CheckViolationException::class, fn () => $this->db->execute('INSERT INTO items (id, name, price) VALUES (2, ?, -1)', ['two']));
        self::assertSame('price_is_positive', $error->constraint);
    }

    public function testALongStatementIsCutInMessages(): void
    {
        $error = self::thrown(SyntaxErrorException::class, fn () => $this->db->execute('SELEC ' . \str_repeat('x', 100_000)));

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
            $error = self::thrown(InvalidParameterException::class, $run);
            self::assertStringContainsString('the statement is not UTF-8: byte 0xE9 at offset 11', $error->getMessage());
            self::assertStringContainsString("SELECT 'caf", (string) $error->statement);
        }
    }

    public function testADsnOrPoolNameThatIsNotUtf8IsRefusedWithoutBeingShown(): void
    {
        $error = self::thrown(InvalidDsnError::class, static fn () => Database::connect("postgres://app:hunter\xff@localhost/app"));
        self::assertSame('invalid database DSN: it is not UTF-8: byte 0xFF at offset 21; percent-encode it', $error->getMessage());
        self::thrown(UsageError::class, static fn () => Database::connect('sqlite::memory:', new PoolOptions(name: "\xff")));
    }

    /** @dataProvider boundaries */
    #[DataProvider('boundaries')]
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

        self::thrown(SyntaxErrorException::class, fn () => $this->db->execute("INSERT INTO items (id, name) VALUES (1, 'a'); DELETE FROM items"));
        self::assertSame([], $this->names());
    }

    /** @return iterable<string, array{string}> */
    public static function wrongDsns(): iterable
    {
        yield 'empty' => [''];
        yield 'no scheme' => ['hunter2'];
        yield 'unknown scheme' => ['oracle://app:hunter2@localhost/app'];
    }

    public function testADsnOfPdoIsRefusedWithTheOneToWrite(): void
    {
        $advice = ['mysql' => 'mysql', 'mariadb' => 'mariadb', 'pgsql' => 'postgres', 'postgresql' => 'postgres'];
        foreach ($advice as $scheme => $right) {
            $error = self::thrown(InvalidDsnError::class, static fn () => Database::connect("$scheme:host=localhost;dbname=app;password=hunter2"));
            self::assertSame("invalid database DSN \"$scheme:***\": that is a DSN of PDO; write $right://user@host/database", $error->getMessage());
        }
    }

    /** @dataProvider wrongDsns */
    #[DataProvider('wrongDsns')]
    public function testAWrongDsnIsRefusedWithoutShowingAPassword(string $dsn): void
    {
        $error = self::thrown(InvalidDsnError::class, static fn () => Database::connect($dsn));

        self::assertStringStartsWith($dsn === '' ? 'invalid database DSN "": the scheme must be' : 'invalid database DSN "', $error->getMessage());
        self::assertStringNotContainsString('hunter2@', $error->getMessage());
    }

    /** @dataProvider wrongDsns */
    #[DataProvider('wrongDsns')]
    public function testAStackTraceShowsNoPartOfADsn(#[\SensitiveParameter] string $dsn): void
    {
        $before = [\ini_set('zend.exception_string_param_max_len', '1000'), \ini_set('zend.exception_ignore_args', '0')];
        try {
            $error = self::thrown(InvalidDsnError::class, static fn () => Database::connect($dsn));
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
        self::thrown(\ValueError::class, static fn () => new PoolOptions(timeouts: new Timeouts(borrow: -1.0)));
        self::thrown(\ValueError::class, static fn () => new PoolOptions(timeouts: new Timeouts(borrow: \NAN)));
    }

    public function testAClosedDatabaseRefusesWork(): void
    {
        $db = $this->connect();
        $db->execute('SELECT 1');
        $db->close();

        self::thrown(PoolClosedException::class, static fn () => $db->execute('SELECT 1'));
        self::thrown(PoolClosedException::class, static fn () => $db->transaction(static fn (Transaction $tx) => $tx->execute('SELECT 1')));
        self::thrown(PoolClosedException::class, static fn () => \iterator_to_array($db->stream('SELECT 1')));
        $db->close();
    }
}
