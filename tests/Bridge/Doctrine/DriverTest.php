<?php

declare(strict_types=1);

namespace Weft\Tests\Bridge\Doctrine;

use Doctrine\DBAL\Configuration;
use Doctrine\DBAL\Connection;
use Doctrine\DBAL\Driver\AbstractSQLiteDriver\Middleware\EnableForeignKeys;
use Doctrine\DBAL\Driver\Exception as DriverException;
use Doctrine\DBAL\DriverManager;
use Doctrine\DBAL\Exception\ConnectionException;
use Doctrine\DBAL\Exception\ForeignKeyConstraintViolationException;
use Doctrine\DBAL\Exception\InvalidFieldNameException;
use Doctrine\DBAL\Exception\NotNullConstraintViolationException;
use Doctrine\DBAL\Exception\SyntaxErrorException;
use Doctrine\DBAL\Exception\TableExistsException;
use Doctrine\DBAL\Exception\TableNotFoundException;
use Doctrine\DBAL\Exception\UniqueConstraintViolationException;
use Doctrine\DBAL\ParameterType;
use Doctrine\DBAL\Types\Types;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Bridge\Doctrine\Connection as WeftConnection;
use Weft\Bridge\Doctrine\Driver;
use Weft\Bridge\Doctrine\Middleware;
use Weft\Runtime\CancelledException;
use Weft\Runtime\Channel;
use Weft\Runtime\TimeoutException;
use Weft\Sql\Database;
use Weft\Tests\PdoMysql;
use Weft\Tests\Sql\Support\Databases;
use Weft\UsageError;

use function Weft\all;
use function Weft\async;
use function Weft\delay;
use function Weft\run;
use function Weft\timeout;

require_once __DIR__ . '/autoload.php';

final class DriverTest extends TestCase
{
    use Databases;

    private const ID = [
        'sqlite' => 'INTEGER PRIMARY KEY AUTOINCREMENT',
        'postgres' => 'SERIAL PRIMARY KEY',
        'mariadb' => 'INT AUTO_INCREMENT PRIMARY KEY',
    ];

    /** Statements that end only by a cancellation. */
    private const LONG = [
        'sqlite' => 'WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) INSERT INTO items SELECT count(*) FROM c',
        'postgres' => 'SELECT pg_sleep(600)',
        'mariadb' => 'DO SLEEP(600)',
    ];

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testValuesGoThroughTheTypesOfDbalAndComeBackTheSame(string $kind): void
    {
        $connection = $this->connect($this->database($kind));
        $schema = new \Doctrine\DBAL\Schema\Schema();
        $table = $schema->createTable('everything');
        $values = [
            'a_boolean' => [Types::BOOLEAN, true, []],
            'a_smallint' => [Types::SMALLINT, -7, []],
            'a_bigint' => [Types::BIGINT, '9007199254740993', []],
            'a_float' => [Types::FLOAT, 0.25, []],
            'a_decimal' => [Types::DECIMAL, '1234.25', ['precision' => 10, 'scale' => 2]],
            'a_string' => [Types::STRING, "Zoë's 100% \\ \"quote\"", ['length' => 60]],
            'a_text' => [Types::TEXT, \str_repeat('é', 5_000), []],
            'a_guid' => [Types::GUID, '3f2504e0-4f89-41d3-9a0c-0305e82c3301', []],
            'a_date' => [Types::DATE_IMMUTABLE, new \DateTimeImmutable('2024-02-29 00:00:00'), []],
            'a_datetime' => [Types::DATETIME_IMMUTABLE, new \DateTimeImmutable('2024-02-29 13:14:15'), []],
            'a_mutable' => [Types::DATETIME_MUTABLE, new \DateTime('1999-12-31 23:59:59'), []],
            'a_time' => [Types::TIME_IMMUTABLE, new \DateTimeImmutable('1970-01-01 01:02:03'), []],
            'a_json' => [Types::JSON, ['list' => [1, 2, ['deep' => null]], 'text' => 'ü'], []],
            'a_list' => [Types::SIMPLE_ARRAY, ['a', 'b'], []],
            'a_null' => [Types::STRING, null, ['length' => 10]],
        ];
        foreach ($values as $name => [$type, , $options]) {
            $table->addColumn($name, $type, $options + ['notnull' => false]);
        }
        $table->addColumn('a_blob', Types::BLOB, ['notnull' => false]);
        foreach ($schema->toSql($connection->getDatabasePlatform()) as $sql) {
            $connection->executeStatement($sql);
        }
        $blob = \random_bytes(300) . "\0'\\";

        $connection->insert(
            'everything',
            ['a_blob' => $blob] + \array_map(static fn(array $value): mixed => $value[1], $values),
            ['a_blob' => Types::BLOB] + \array_map(static fn(array $value): string => $value[0], $values),
        );
        $row = $connection->fetchAssociative('SELECT * FROM everything');

        self::assertIsArray($row);
        foreach ($values as $name => [$type, $value]) {
            self::assertEquals($value, $connection->convertToPHPValue($row[$name], $type), $name);
        }
        self::assertInstanceOf(\DateTime::class, $connection->convertToPHPValue($row['a_mutable'], Types::DATETIME_MUTABLE));
        self::assertSame($blob, \stream_get_contents($connection->convertToPHPValue($row['a_blob'], Types::BLOB)));
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testParametersAreBoundByPositionAndByNameAndRowsKeepColumnsOfTheSameName(string $kind): void
    {
        $connection = $this->connect($this->database($kind));
        $connection->executeStatement('CREATE TABLE words (id INT, word VARCHAR(20))');
        foreach ([1 => 'one', 2 => 'two', 3 => 'three'] as $id => $word) {
            $connection->executeStatement('INSERT INTO words VALUES (?, ?)', [$id, $word], [ParameterType::INTEGER, ParameterType::STRING]);
        }

        self::assertSame('two', $connection->fetchOne('SELECT word FROM words WHERE id = :id', ['id' => 2]));
        self::assertSame([[1, 'one', 1, 'one']], $connection->fetchAllNumeric('SELECT * FROM words a JOIN words b ON b.id = a.id WHERE a.id = ?', [1]));
        self::assertSame(['one', 'three'], $connection->fetchFirstColumn('SELECT word FROM words WHERE id IN (?) ORDER BY id', [[1, 3]], [self::integers()]));
        self::assertSame([1 => 'one', 2 => 'two', 3 => 'three'], $connection->fetchAllKeyValue('SELECT id, word FROM words ORDER BY id'));
        self::assertSame("it's", $connection->fetchOne('SELECT ' . $connection->quote("it's")));
        self::assertSame('a\\b', $connection->fetchOne('SELECT ' . $connection->quote('a\\b')));
        self::assertSame(2, $connection->executeStatement('UPDATE words SET word = ? WHERE id > ?', ['many', 1]));
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testAnIdCanBeAskedForAfterAnInsertOutsideOfATransaction(string $kind): void
    {
        $database = $this->database($kind);
        $connection = $this->connect($database);
        $connection->executeStatement('CREATE TABLE items (id ' . self::ID[$kind] . ', name VARCHAR(20))');
        $connection->insert('items', ['name' => 'first']);
        self::assertSame(1, (int) $connection->lastInsertId());
        $connection->insert('items', ['name' => 'second']);
        self::assertSame(2, (int) $connection->lastInsertId());
        $connection->fetchOne('SELECT 1');

        self::assertSame(0, $database->stats()['in_use'] ?? 0);
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testTheIdIsThatOfTheTaskAlsoAfterACommentBeforeTheInsert(string $kind): void
    {
        $database = $this->database($kind);
        [$one, $other] = [$this->connect($database), $this->connect($database)];
        $one->executeStatement('CREATE TABLE items (id ' . self::ID[$kind] . ', name VARCHAR(20))');
        foreach (['/* app:shop */ ', "-- app\n"] as $number => $comment) {
            $one->executeStatement("{$comment}INSERT INTO items (name) VALUES ('one')");
            $other->executeStatement("{$comment}INSERT INTO items (name) VALUES ('other')");

            self::assertSame([2 * $number + 1, 2 * $number + 2], [(int) $one->lastInsertId(), (int) $other->lastInsertId()], $comment);
        }
    }

    public function testTheIdOfAnInsertThatReturnsColumnsIsKnownOnSqlite(): void
    {
        $connection = $this->connect($this->database('sqlite'));
        $connection->executeStatement('CREATE TABLE items (id ' . self::ID['sqlite'] . ', name VARCHAR(20))');
        $connection->insert('items', ['name' => 'first']);

        self::assertSame('second', $connection->fetchOne("INSERT INTO items (name) VALUES ('second') RETURNING name"));
        self::assertSame(2, (int) $connection->lastInsertId());
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testErrorsOfTheDatabaseAreTheExceptionsOfDbal(string $kind): void
    {
        $connection = $this->connect($this->database($kind));
        if ($kind === 'sqlite') {
            $connection->executeStatement('PRAGMA foreign_keys = ON');
        }
        $connection->executeStatement('CREATE TABLE parents (id INT NOT NULL PRIMARY KEY)');
        $connection->executeStatement('CREATE TABLE children (id INT NOT NULL, parent INT, FOREIGN KEY (parent) REFERENCES parents (id))');
        $connection->executeStatement('INSERT INTO parents VALUES (1)');

        $errors = [
            UniqueConstraintViolationException::class => 'INSERT INTO parents VALUES (1)',
            NotNullConstraintViolationException::class => 'INSERT INTO children VALUES (NULL, 1)',
            ForeignKeyConstraintViolationException::class => 'INSERT INTO children VALUES (1, 2)',
            TableNotFoundException::class => 'SELECT * FROM nowhere',
            TableExistsException::class => 'CREATE TABLE parents (id INT)',
            InvalidFieldNameException::class => 'SELECT absent FROM parents',
            SyntaxErrorException::class => 'SELECT FROM WHERE',
        ];
        if ($kind === 'sqlite') {
            // DBAL does not know SQLite's words for it.
            $errors = \array_diff_key($errors, [InvalidFieldNameException::class => true]);
        }
        foreach ($errors as $expected => $sql) {
            try {
                $connection->executeStatement($sql);
                self::fail("$sql succeeded");
            } catch (\Doctrine\DBAL\Exception $thrown) {
                self::assertInstanceOf($expected, $thrown, $thrown->getMessage());
            }
        }
    }

    public function testTheStateOfAnErrorOfMysqlIsMysqls(): void
    {
        $connection = $this->connect($this->database('mariadb'));
        $connection->executeStatement('CREATE TABLE items (id INT PRIMARY KEY, parent INT, FOREIGN KEY (parent) REFERENCES items (id))');
        $connection->insert('items', ['id' => 1]);
        $states = [];
        foreach (['INSERT INTO items (id) VALUES (1)', 'INSERT INTO items VALUES (2, 9)', 'SELECT nothing FROM items', 'SELECT 1 FROM nowhere', 'SELEC 1'] as $statement) {
            try {
                $connection->executeStatement($statement);
            } catch (\Doctrine\DBAL\Exception\DriverException $failed) {
                $states[] = [$failed->getSQLState(), $failed->getCode()];
            }
        }

        self::assertSame([['23000', 1062], ['23000', 1452], ['42S22', 1054], ['42S02', 1146], ['42000', 1064]], $states);
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testAnErrorInATransactionLeavesItAsTheServerLeavesIt(string $kind): void
    {
        $connection = $this->connect($this->database($kind));
        $connection->executeStatement('CREATE TABLE items (id INT NOT NULL PRIMARY KEY)');

        $connection->beginTransaction();
        $connection->executeStatement('INSERT INTO items VALUES (1)');
        try {
            $connection->executeStatement('INSERT INTO items VALUES (1)');
            self::fail('the duplicate was stored');
        } catch (UniqueConstraintViolationException) {
        }
        if ($kind === 'postgres') {
            try {
                $connection->executeStatement('INSERT INTO items VALUES (2)');
                self::fail('PostgreSQL goes on after an error');
            } catch (\Doctrine\DBAL\Exception\DriverException $aborted) {
                self::assertSame('25P02', $aborted->getSQLState());
            }
            $connection->rollBack();
            self::assertSame([], $connection->fetchFirstColumn('SELECT id FROM items ORDER BY id'));
        } else {
            $connection->executeStatement('INSERT INTO items VALUES (2)');
            $connection->commit();
            self::assertSame([1, 2], $connection->fetchFirstColumn('SELECT id FROM items ORDER BY id'));
        }
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testNestedTransactionsAreSavepoints(string $kind): void
    {
        $connection = $this->connect($this->database($kind));
        if (\method_exists($connection, 'setNestTransactionsWithSavepoints')) {
            $connection->setNestTransactionsWithSavepoints(true);
        }
        $connection->executeStatement('CREATE TABLE items (id INT NOT NULL PRIMARY KEY)');

        $connection->transactional(static function (Connection $connection): void {
            $connection->executeStatement('INSERT INTO items VALUES (1)');
            try {
                $connection->transactional(static function (Connection $connection): void {
                    $connection->executeStatement('INSERT INTO items VALUES (2)');
                    $connection->executeStatement('INSERT INTO items VALUES (1)');
                });
                self::fail('the duplicate was stored');
            } catch (UniqueConstraintViolationException) {
            }
            $connection->transactional(static fn(Connection $connection) => $connection->executeStatement('INSERT INTO items VALUES (3)'));
        });

        self::assertSame([1, 3], $connection->fetchFirstColumn('SELECT id FROM items ORDER BY id'));
        self::assertFalse($connection->isTransactionActive());
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testATransactionOfOneTaskIsNotSeenByAnother(string $kind): void
    {
        $database = $this->database($kind);
        $this->connect($database)->executeStatement('CREATE TABLE items (id INT NOT NULL PRIMARY KEY)');

        $seen = run(function () use ($database): int {
            [$inserted, $looked] = [new Channel(1), new Channel(1)];
            $writer = async(function () use ($database, $inserted, $looked): void {
                $connection = $this->connect($database);
                $connection->beginTransaction();
                $connection->executeStatement('INSERT INTO items VALUES (1)');
                $inserted->send(true);
                $looked->receive();
                $connection->commit();
            });
            $inserted->receive();
            $reader = $this->connect($database);
            $before = (int) $reader->fetchOne('SELECT count(*) FROM items');
            $looked->send(true);
            $writer->await();

            return $before * 10 + (int) $reader->fetchOne('SELECT count(*) FROM items');
        });

        self::assertSame(1, $seen);
    }

    /** @dataProvider servers */
    #[DataProvider('servers')]
    public function testAConnectionIsBorrowedForAStatementAndHeldForATransaction(string $kind): void
    {
        $database = $this->database($kind);
        $connection = $this->connect($database);
        $connection->executeStatement('CREATE TABLE items (id INT)');
        $held = fn(): int => $database->stats()['in_use'];

        $connection->fetchOne('SELECT 1');
        self::assertSame(0, $held());
        $connection->beginTransaction();
        self::assertSame(0, $held(), 'nothing was asked of the server yet');
        $connection->executeStatement('INSERT INTO items VALUES (1)');
        self::assertSame(1, $held());
        $connection->commit();
        self::assertSame(0, $held());

        $connection->beginTransaction();
        $connection->commit();
        self::assertSame(0, $held());
    }

    /** @dataProvider servers */
    #[DataProvider('servers')]
    public function testATemporaryTableLastsUntilTheConnectionIsClosed(string $kind): void
    {
        $database = $this->database($kind, size: 1);
        $connection = $this->connect($database);
        $connection->executeStatement('CREATE TEMPORARY TABLE drafts (id INT)');
        $connection->executeStatement('INSERT INTO drafts VALUES (1)');
        self::assertSame(1, (int) $connection->fetchOne('SELECT count(*) FROM drafts'));
        self::assertSame(1, $database->stats()['in_use']);
        $connection->close();

        $this->expectException(TableNotFoundException::class);
        $this->connect($database)->fetchOne('SELECT count(*) FROM drafts');
    }

    /** @dataProvider servers */
    #[DataProvider('servers')]
    public function testAStatementThatIsCancelledInATransactionEndsItAndRollingBackHelps(string $kind): void
    {
        $database = $this->database($kind);
        $connection = $this->connect($database);
        $connection->executeStatement('CREATE TABLE items (id INT)');
        $sleep = $kind === 'postgres' ? 'SELECT pg_sleep(60)' : 'SELECT SLEEP(60)';

        run(static function () use ($connection, $sleep): void {
            $connection->beginTransaction();
            $connection->executeStatement('INSERT INTO items VALUES (1)');
            try {
                timeout(0.05, static fn() => $connection->fetchOne($sleep));
                self::fail('the statement was not cancelled');
            } catch (TimeoutException) {
            }
            try {
                $connection->executeStatement('INSERT INTO items VALUES (2)');
                self::fail('a statement ran outside of the transaction that it belongs to');
            } catch (\Doctrine\DBAL\Exception $lost) {
                self::assertStringContainsString('cancelled', $lost->getMessage());
            }
            $connection->rollBack();
            $connection->executeStatement('INSERT INTO items VALUES (3)');
        });

        self::assertSame([3], $connection->fetchFirstColumn('SELECT id FROM items'));
    }

    /** @return iterable<string, array{string, string}> */
    public static function nested(): iterable
    {
        foreach (self::databases() as $name => [$kind]) {
            foreach (['the statement', 'the inner transaction', 'the outer transaction', 'the task'] as $what) {
                yield "$name, $what" => [$kind, $what];
            }
        }
    }

    /** @dataProvider nested */
    #[DataProvider('nested')]
    public function testAConnectionIsUsableAfterACancellationInANestedTransaction(string $kind, string $cancelled): void
    {
        $connection = $this->connect($this->database($kind));
        if (\method_exists($connection, 'setNestTransactionsWithSavepoints')) {
            $connection->setNestTransactionsWithSavepoints(true);
        }
        $connection->executeStatement('CREATE TABLE items (id INT NOT NULL PRIMARY KEY)');
        $limited = static fn(string $what, \Closure $work): mixed => $what === $cancelled ? timeout(0.1, $work) : $work();
        $work = static fn(): mixed => $limited('the outer transaction', static fn(): mixed => $connection->transactional(static function (Connection $connection) use ($limited, $kind): void {
            $connection->executeStatement('INSERT INTO items VALUES (1)');
            $limited('the inner transaction', static fn(): mixed => $connection->transactional(static function (Connection $connection) use ($limited, $kind): void {
                $connection->executeStatement('INSERT INTO items VALUES (2)');
                $limited('the statement', static fn(): mixed => $connection->executeStatement(self::LONG[$kind]));
            }));
        }));

        $thrown = null;
        try {
            run(static function () use ($work, $cancelled): void {
                $task = async($work);
                if ($cancelled === 'the task') {
                    delay(0.1);
                    $task->cancel('the test');
                }
                $task->await();
            });
        } catch (\Throwable $thrown) {
        }

        self::assertInstanceOf($cancelled === 'the task' ? CancelledException::class : TimeoutException::class, $thrown);
        self::assertSame(0, $connection->getTransactionNestingLevel());
        self::assertSame([], $connection->fetchFirstColumn('SELECT id FROM items'));
        $connection->transactional(static fn(Connection $connection) => $connection->executeStatement('INSERT INTO items VALUES (3)'));
        self::assertSame([3], $connection->fetchFirstColumn('SELECT id FROM items'));
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testATransactionThatHasLostItsInnerOneByACancellationCannotCommit(string $kind): void
    {
        $connection = $this->connect($this->database($kind));
        if (\method_exists($connection, 'setNestTransactionsWithSavepoints')) {
            $connection->setNestTransactionsWithSavepoints(true);
        }
        $connection->executeStatement('CREATE TABLE items (id INT NOT NULL PRIMARY KEY)');

        run(static function () use ($connection, $kind): void {
            foreach (['a statement', 'the commit'] as $next) {
                $connection->beginTransaction();
                $connection->executeStatement('INSERT INTO items VALUES (1)');
                try {
                    timeout(0.1, static fn(): mixed => $connection->transactional(static fn(Connection $connection) => $connection->executeStatement(self::LONG[$kind])));
                    self::fail('the statement was not cancelled');
                } catch (TimeoutException) {
                }
                self::assertSame(1, $connection->getTransactionNestingLevel());
                try {
                    $next === 'the commit' ? $connection->commit() : $connection->executeStatement('INSERT INTO items VALUES (2)');
                    self::fail("$next succeeded without what was before it");
                } catch (\Doctrine\DBAL\Exception | DriverException $lost) {
                    self::assertStringContainsString('rolled back', $lost->getMessage());
                }
                $connection->isTransactionActive() && $connection->rollBack();
                self::assertSame([], $connection->fetchFirstColumn('SELECT id FROM items'), $next);
            }
        });
    }

    /** @dataProvider servers */
    #[DataProvider('servers')]
    public function testATransactionThatCannotBeginIsAnExceptionOfTheDriver(string $kind): void
    {
        $connection = (new Driver($this->database($kind)))->connect([]);
        $connection->exec('CREATE TEMPORARY TABLE drafts (id INT)');
        $sleep = $kind === 'postgres' ? 'SELECT pg_sleep(60)' : 'SELECT SLEEP(60)';

        run(static function () use ($connection, $sleep): void {
            try {
                timeout(0.05, static fn() => $connection->query($sleep));
                self::fail('the statement was not cancelled');
            } catch (TimeoutException) {
            }
            try {
                // Fails once the session has noticed the cancellation.
                $connection->query('SELECT 1');
                self::fail('a statement ran in another session');
            } catch (DriverException) {
            }
            try {
                $connection->beginTransaction();
                self::fail('a transaction began in another session');
            } catch (DriverException $lost) {
                self::assertStringContainsString('cancelled', $lost->getMessage());
            }
            self::assertFalse($connection->isInTransaction());
            $connection->rollBack();
            $connection->beginTransaction();
            self::assertTrue($connection->isInTransaction());
        });
    }

    public function testARollbackThatFailsIsAnExceptionOfTheDriver(): void
    {
        $database = $this->database('sqlite');
        $connection = (new Driver($database))->connect([]);
        $connection->beginTransaction();
        $connection->exec('CREATE TABLE items (id INT)');
        $database->close();

        $this->expectException(DriverException::class);
        $this->expectExceptionMessage('is closed');
        $connection->rollBack();
    }

    /** @dataProvider servers */
    #[DataProvider('servers')]
    public function testMoreTasksThanConnectionsTakeTurns(string $kind): void
    {
        $database = $this->database($kind, size: 3);
        $this->connect($database)->executeStatement('CREATE TABLE items (id INT NOT NULL PRIMARY KEY)');

        run(function () use ($database): void {
            all(\array_map(fn(int $id): \Closure => function () use ($database, $id): void {
                $connection = $this->connect($database);
                $connection->transactional(static function (Connection $connection) use ($id): void {
                    $connection->executeStatement('INSERT INTO items VALUES (?)', [$id]);
                    self::assertSame($id, $connection->fetchOne('SELECT max(id) FROM items WHERE id = ?', [$id]));
                });
            }, \range(1, 40)));
        });

        self::assertSame(40, (int) $this->connect($database)->fetchOne('SELECT count(*) FROM items'));
        self::assertLessThanOrEqual(3, $database->stats()['total']);
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testTheMiddlewareTakesThePlaceOfAnyDriver(string $kind): void
    {
        $parameters = $this->parameters($kind);
        $configuration = new Configuration();
        $configuration->setMiddlewares([new Middleware()]);

        $first = DriverManager::getConnection($parameters, $configuration);
        $second = DriverManager::getConnection($parameters, $configuration);

        self::assertSame(42, (int) $first->fetchOne('SELECT 42'));
        self::assertSame(42, (int) $second->fetchOne('SELECT 42'));
        self::assertInstanceOf(Database::class, $first->getNativeConnection());
        self::assertSame($first->getNativeConnection(), $second->getNativeConnection(), 'connections with the same parameters share a pool');
    }

    public function testThePoolOfClosedConnectionsStaysOpenAndThoseOfManyParametersDoNot(): void
    {
        $connect = static fn(string $name): Connection => DriverManager::getConnection(
            ['driver' => 'pdo_sqlite', 'path' => \sys_get_temp_dir() . "/weft-doctrine-$name.db", 'driverClass' => Driver::class],
        );
        $prefix = \bin2hex(\random_bytes(6));
        $pools = [];
        try {
            for ($tenant = 0; $tenant < 30; $tenant++) {
                $connection = $connect("$prefix-$tenant");
                $pools[] = \WeakReference::create($connection->getNativeConnection());
                self::assertSame(1, (int) $connection->fetchOne('SELECT 1'));
                $connection->close();
            }
            $open = \array_keys(\array_filter($pools, static fn(\WeakReference $pool): bool => $pool->get() !== null));

            self::assertSame(\range(14, 29), $open);
            self::assertSame($pools[29]->get(), $connect("$prefix-29")->getNativeConnection());
        } finally {
            // A database that is being closed removes some itself.
            \array_map(static fn(string $file): bool => @\unlink($file), \glob(\sys_get_temp_dir() . "/weft-doctrine-$prefix*") ?: []);
        }
    }

    public function testAServerThatIsDownIsAConnectionException(): void
    {
        $this->expectException(ConnectionException::class);
        DriverManager::getConnection(['driver' => 'pdo_pgsql', 'driverClass' => Driver::class, 'host' => '127.0.0.1', 'port' => 1, 'user' => 'nobody', 'dbname' => 'none'])->fetchOne('SELECT 1');
    }

    /** @dataProvider fileNames */
    #[DataProvider('fileNames')]
    public function testTheFileOfSqliteHasTheNameThatTheParametersSay(string $name): void
    {
        $directory = \sys_get_temp_dir() . '/weft-doctrine-' . \bin2hex(\random_bytes(6));
        \mkdir($directory);
        try {
            $connection = DriverManager::getConnection(['driver' => 'pdo_sqlite', 'path' => "$directory/$name", 'driverClass' => Driver::class]);
            $connection->executeStatement('CREATE TABLE t (id INTEGER)');

            self::assertFileExists("$directory/$name");
        } finally {
            \array_map(\unlink(...), \glob("$directory/*") ?: []);
            \rmdir($directory);
        }
    }

    /** @return iterable<string, array{string}> */
    public static function fileNames(): iterable
    {
        foreach (['a%41.db', 'a?readers=2', 'a#b c+d.db'] as $name) {
            yield $name => [$name];
        }
    }

    public function testAChangeOfATableOfSqliteKeepsTheRowsThatReferToIt(): void
    {
        $connection = DriverManager::getConnection($this->parameters('sqlite') + ['driverClass' => Driver::class]);
        $connection->executeStatement('CREATE TABLE customers (id INTEGER PRIMARY KEY NOT NULL, name VARCHAR(80) NOT NULL)');
        $connection->executeStatement('CREATE TABLE orders (id INTEGER PRIMARY KEY NOT NULL, customer INTEGER NOT NULL REFERENCES customers (id) ON DELETE CASCADE)');
        $connection->insert('customers', ['id' => 1, 'name' => 'Zoë']);
        $connection->insert('orders', ['id' => 7, 'customer' => 1]);

        // DBAL makes the table anew: it drops the one that there is.
        $schema = $connection->createSchemaManager();
        $table = $schema->introspectTable('customers');
        $longer = clone $table;
        $longer->getColumn('name')->setLength(120);
        foreach ($connection->getDatabasePlatform()->getAlterTableSQL($schema->createComparator()->compareTables($table, $longer)) as $statement) {
            $connection->executeStatement($statement);
        }

        self::assertSame([7], $connection->fetchFirstColumn('SELECT id FROM orders'));
        self::assertSame(120, $schema->introspectTable('customers')->getColumn('name')->getLength());
    }

    public function testForeignKeysOfSqliteAreCheckedWhereTheApplicationTurnsThemOn(): void
    {
        $configuration = new Configuration();
        $configuration->setMiddlewares([new Middleware(), new EnableForeignKeys()]);
        $connection = DriverManager::getConnection(['driver' => 'pdo_sqlite', 'memory' => true], $configuration);
        $connection->executeStatement('CREATE TABLE customers (id INTEGER PRIMARY KEY NOT NULL)');
        $connection->executeStatement('CREATE TABLE orders (id INTEGER PRIMARY KEY NOT NULL, customer INTEGER NOT NULL REFERENCES customers (id))');

        $this->expectException(ForeignKeyConstraintViolationException::class);
        $connection->insert('orders', ['id' => 7, 'customer' => 1]);
    }

    public function testNumbersOfAPoolMayBeTextAndAnUnknownOptionIsNamed(): void
    {
        $connect = static fn(array $pool): mixed => DriverManager::getConnection(['driver' => 'pdo_sqlite', 'memory' => true, 'driverClass' => Driver::class, 'driverOptions' => ['pool' => $pool]])
            ->fetchOne('SELECT 1');

        self::assertEquals(1, $connect(['size' => '3', 'minimumIdle' => '0']));
        foreach (['has the option "max", and no pool has that' => ['max' => 3], '"size" in "pool" in the driverOptions of the connection is "many": it must be an integer' => ['size' => 'many']] as $message => $pool) {
            try {
                $connect($pool);
                self::fail("connected: $message");
            } catch (UsageError $refused) {
                self::assertStringContainsString($message, $refused->getMessage());
            }
        }
    }

    public function testAnotherCharacterSetThanUtf8IsRefused(): void
    {
        $this->expectException(UsageError::class);
        $this->expectExceptionMessage('LATIN1');
        DriverManager::getConnection(['driver' => 'pdo_pgsql', 'driverClass' => Driver::class, 'charset' => 'LATIN1'])->fetchOne('SELECT 1');
    }

    /**
     * @param array<string, mixed> $parameters
     *
     * @dataProvider tlsParameters
     */
    #[DataProvider('tlsParameters')]
    public function testOptionsOfMysqlsExtensionsVerifyTheServer(array $parameters, int|string $parameter): void
    {
        $dsn = \getenv('WEFT_MYSQL_TLS_DSN');
        self::assertNotFalse($dsn, 'WEFT_MYSQL_TLS_DSN is not set: run `make services`');
        $url = (array) \parse_url($dsn);
        \parse_str((string) ($url['query'] ?? ''), $query);
        $server = [
            'host' => $url['host'] ?? '', 'port' => $url['port'] ?? 0, 'user' => $url['user'] ?? '', 'password' => $url['pass'] ?? '',
            'dbname' => \ltrim($url['path'] ?? '', '/'),
        ];
        $authority = $query['sslrootcert'];
        $cipher = static function (array $more) use ($server, $parameters): string {
            $connection = DriverManager::getConnection(\array_replace_recursive($parameters, $more) + $server + ['driverClass' => Driver::class]);

            return (string) $connection->fetchNumeric("SHOW STATUS LIKE 'Ssl_cipher'")[1];
        };
        $with = static fn(string $file): array => $parameter === 'ssl_ca' ? ['ssl_ca' => $file] : ['driverOptions' => [$parameter => $file]];

        self::assertNotSame('', $cipher($with($authority)));
        try {
            $cipher($with(__DIR__ . '/no-such-authority.pem'));
            self::fail('the server was not verified');
        } catch (UsageError | ConnectionException $refused) {
            self::assertStringContainsString('no-such-authority.pem', $refused->getMessage());
        }
    }

    /** @return iterable<string, array{array<string, mixed>, int|string}> */
    public static function tlsParameters(): iterable
    {
        if (\extension_loaded('pdo_mysql')) {
            yield 'pdo_mysql' => [['driver' => 'pdo_mysql'], PdoMysql::attribute('SSL_CA')];
            $verified = ['driverOptions' => [PdoMysql::attribute('SSL_VERIFY_SERVER_CERT') => true]];
            yield 'pdo_mysql, verified' => [['driver' => 'pdo_mysql'] + $verified, PdoMysql::attribute('SSL_CA')];
        }
        yield 'mysqli' => [['driver' => 'mysqli'], 'ssl_ca'];
    }

    public function testAStatementThatTheOptionsOfMysqlNameRunsInEachConnection(): void
    {
        foreach (\array_filter(['pdo_mysql', 'mysqli'], \extension_loaded(...)) as $driver) {
            $option = $driver === 'mysqli' ? \MYSQLI_INIT_COMMAND : PdoMysql::attribute('INIT_COMMAND');
            $connection = DriverManager::getConnection(
                ['driver' => $driver, 'driverOptions' => [$option => "SET time_zone = '+05:00'"], 'driverClass' => Driver::class] + $this->parameters('mariadb'),
            );

            self::assertSame('+05:00', $connection->fetchOne('SELECT @@time_zone'), $driver);
        }
    }

    /**
     * @param array<string, mixed> $parameters
     *
     * @dataProvider unsupportedParameters
     */
    #[DataProvider('unsupportedParameters')]
    public function testAParameterOfTlsThatWouldHaveNoEffectIsRefused(array $parameters, string $complaint): void
    {
        $this->expectException(UsageError::class);
        $this->expectExceptionMessage($complaint);
        DriverManager::getConnection($parameters + ['driverClass' => Driver::class, 'host' => 'host.invalid'])->fetchOne('SELECT 1');
    }

    /** @return iterable<string, array{array<string, mixed>, string}> */
    public static function unsupportedParameters(): iterable
    {
        foreach (['SSL_KEY', 'SSL_CERT', 'SSL_CAPATH', 'SSL_CIPHER'] as $name) {
            if (\defined("PDO::MYSQL_ATTR_$name")) {
                $options = [(int) \constant("PDO::MYSQL_ATTR_$name") => 'x'];
                yield $name => [['driver' => 'pdo_mysql', 'driverOptions' => $options], "PDO's option MYSQL_ATTR_$name, which Weft does not support"];
            }
            $name = \strtolower($name);
            yield $name => [['driver' => 'mysqli', $name => 'x'], "the parameter \"$name\", which Weft does not support"];
        }
        foreach (['sslcert', 'sslkey', 'sslcrl'] as $name) {
            yield $name => [['driver' => 'pdo_pgsql', $name => 'x'], "the parameter \"$name\", which Weft does not support"];
        }
    }

    /** @dataProvider servers */
    #[DataProvider('servers')]
    public function testResetUndoesATransactionThatARequestLeavesOpen(string $kind): void
    {
        $database = $this->database($kind);
        $driver = new Driver($database);
        $connection = $driver->connect([]);
        self::assertInstanceOf(WeftConnection::class, $connection);
        $connection->exec('CREATE TABLE items (id INT)');
        $connection->beginTransaction();
        $connection->exec('INSERT INTO items VALUES (1)');
        self::assertTrue($connection->isInTransaction());
        $connection->reset();

        self::assertFalse($connection->isInTransaction());
        self::assertSame(0, (int) $connection->query('SELECT count(*) FROM items')->fetchOne());
    }

    /** @dataProvider servers */
    #[DataProvider('servers')]
    public function testASessionIsFreshAfterAResetDirectlyAfterACancelledStatement(string $kind): void
    {
        $session = $this->database($kind)->plainSession();

        $value = run(static function () use ($session, $kind): mixed {
            $session->execute($kind === 'postgres' ? 'SET search_path TO public' : 'SET @a = 1');
            try {
                timeout(0.05, static fn() => $session->execute($kind === 'postgres' ? 'SELECT pg_sleep(60)' : 'SELECT SLEEP(60)'));
                self::fail('the statement was not cancelled');
            } catch (TimeoutException) {
            }
            $session->reset();

            return $session->execute('SELECT 1')[1][0][0];
        });

        self::assertSame(1, (int) $value);
    }

    public function testATransactionOfSqliteBeginsAfterAResetDirectlyAfterACancelledStatement(): void
    {
        $database = $this->database('sqlite');
        $database->execute('CREATE TABLE items (id INT)');
        $session = $database->plainSession();
        $long = 'WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) INSERT INTO items SELECT count(*) FROM c';

        run(static function () use ($session, $long): void {
            $session->begin();
            try {
                timeout(0.05, static fn() => $session->execute($long));
                self::fail('the statement was not cancelled');
            } catch (TimeoutException) {
            }
            $session->reset();
            $session->begin();
            $session->execute('INSERT INTO items VALUES (3)');
            $session->commit();
        });

        self::assertSame([3], $database->execute('SELECT id FROM items')->column());
    }

    /** @dataProvider servers */
    #[DataProvider('servers')]
    public function testASessionThatIsResetBesideAStatementHasNothingOfItsTransaction(string $kind): void
    {
        $database = $this->database($kind);
        $database->execute('CREATE TABLE items (id INT)');
        $session = $database->plainSession();

        run(static function () use ($session, $kind): void {
            $begun = new Channel(1);
            $left = async(static function () use ($session, $kind, $begun): void {
                $session->begin();
                $session->execute('INSERT INTO items VALUES (1)');
                $begun->send(true);
                $session->execute($kind === 'postgres' ? 'SELECT pg_sleep(0.3)' : 'SELECT SLEEP(0.3)');
            });
            $begun->receive();
            delay(0.05);
            $session->reset();
            $left->await();
            $session->execute('INSERT INTO items VALUES (2)');
        });

        self::assertSame([2], $database->execute('SELECT id FROM items')->column());
    }

    /** @return iterable<string, array{string}> */
    public static function servers(): iterable
    {
        yield 'PostgreSQL' => ['postgres'];
        yield 'MariaDB or MySQL' => ['mariadb'];
    }

    private function connect(Database $database): Connection
    {
        return DriverManager::getConnection(['driverClass' => Driver::class, 'driverOptions' => ['database' => $database]]);
    }

    /** @return array<string, mixed> of DBAL */
    private function parameters(string $kind): array
    {
        $dsn = $this->databaseDsn($kind);
        if ($kind === 'sqlite') {
            return ['driver' => 'pdo_sqlite', 'path' => \substr($dsn, \strlen('sqlite:'))];
        }
        $url = \parse_url($dsn);
        \assert(\is_array($url));

        return [
            'driver' => $kind === 'postgres' ? 'pdo_pgsql' : 'pdo_mysql',
            'host' => $url['host'] ?? '',
            'port' => $url['port'] ?? 0,
            'user' => $url['user'] ?? '',
            'password' => $url['pass'] ?? '',
            'dbname' => \ltrim($url['path'] ?? '', '/'),
        ];
    }

    /** DBAL 3.6 and later name it by an enum's case or a constant. */
    private static function integers(): mixed
    {
        return \constant('Doctrine\DBAL\ArrayParameterType::INTEGER');
    }
}
