<?php

declare(strict_types=1);

namespace Weft\Tests\Bridge\Laravel;

use Illuminate\Container\Container;
use Illuminate\Database\Capsule\Manager;
use Illuminate\Database\Connection;
use Illuminate\Database\DatabaseManager;
use Illuminate\Database\Eloquent\Model;
use Illuminate\Database\QueryException;
use Illuminate\Database\Schema\Blueprint;
use Illuminate\Events\Dispatcher;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Bridge\Laravel\Database\Connector;
use Weft\Bridge\Laravel\Database\Pdo;
use Weft\Bridge\Laravel\Database\SQLiteConnection;
use Weft\Bridge\Laravel\Internal\Databases as LaravelDatabases;
use Weft\Bridge\Laravel\Internal\DsnConnections;
use Weft\Runtime\Channel;
use Weft\Runtime\TimeoutException;
use Weft\Sql\Database;
use Weft\Tests\PdoMysql;
use Weft\Tests\Sql\Support\Databases;
use Weft\Tests\Timing;
use Weft\UsageError;

use function Weft\all;
use function Weft\async;
use function Weft\run;
use function Weft\timeout;

require_once __DIR__ . '/autoload.php';

/** Laravel's database layer on Weft's pools, and on PDO beside it. */
final class EloquentTest extends TestCase
{
    use RequiresLaravel;
    use Databases;

    /** @return iterable<string, array{string}> */
    public static function databases(): iterable
    {
        yield 'PostgreSQL' => ['postgres'];
        yield 'MariaDB or MySQL' => ['mariadb'];
        yield 'SQLite' => ['sqlite'];
    }

    /** @return iterable<string, array{string}> */
    public static function servers(): iterable
    {
        yield 'PostgreSQL' => ['postgres'];
        yield 'MariaDB or MySQL' => ['mariadb'];
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testTheSameStatementsHaveTheSameResultsAsWithPdo(string $kind): void
    {
        $transcripts = [];
        foreach (['PDO', 'Weft'] as $driver) {
            $connection = $this->connection($kind, $driver === 'Weft');
            $transcripts[$driver] = $this->transcript($connection, $kind);
            $connection->disconnect();
        }

        self::assertNotEmpty($transcripts['PDO']);
        self::assertSame($transcripts['PDO'], $transcripts['Weft']);
    }

    /** @return list<mixed> */
    private function transcript(Connection $connection, string $kind): array
    {
        $schema = $connection->getSchemaBuilder();
        $seen = [];
        $note = static function (string $what, mixed $value) use (&$seen): void {
            $seen[] = [$what, \json_decode((string) \json_encode($value, \JSON_PRESERVE_ZERO_FRACTION), true)];
        };
        $schema->dropIfExists('books');
        $schema->dropIfExists('authors');
        $schema->create('authors', static function (Blueprint $table): void {
            $table->increments('id');
            $table->string('name')->unique();
            $table->boolean('active')->default(true);
            $table->timestamps();
        });
        $schema->create('books', static function (Blueprint $table): void {
            $table->bigIncrements('id');
            $table->unsignedInteger('author_id')->nullable();
            $table->foreign('author_id')->references('id')->on('authors')->onDelete('cascade');
            $table->string('title', 50);
            $table->decimal('price', 8, 2)->nullable();
            $table->double('weight')->nullable();
            $table->json('tags')->nullable();
            $table->date('published')->nullable();
            $table->dateTime('seen')->nullable();
            $table->text('notes')->nullable();
        });
        $schema->table('books', static fn(Blueprint $table) => $table->string('isbn')->nullable());
        $note('tables', [$schema->hasTable('books'), $schema->hasTable('nothing'), $schema->hasColumn('books', 'isbn'), \count($schema->getColumnListing('books'))]);

        $authors = $connection->table('authors');
        $note('id', $authors->insertGetId(['name' => 'Zoë', 'active' => true, 'created_at' => '2026-01-02 03:04:05']));
        $note('id', $authors->insertGetId(['name' => "it's \\ \" a ? :name", 'active' => false]));
        $note('insert', $authors->insert([['name' => 'Ada', 'active' => 1], ['name' => 'Eve', 'active' => 0]]));
        $note('ignored', $authors->insertOrIgnore(['name' => 'Ada']));
        $note('upsert', $authors->upsert([['name' => 'Ada', 'active' => 0], ['name' => 'New', 'active' => 1]], ['name'], ['active']));
        $note('all', $connection->table('authors')->orderBy('id')->get()->all());
        $note('pluck', $connection->table('authors')->orderBy('name')->pluck('id', 'name')->all());
        $note('where', $connection->table('authors')->where('active', true)->whereIn('name', ['Zoë', 'New'])->count());
        $note('like', $connection->table('authors')->where('name', 'like', '%\'%')->value('name'));
        $note('between', $connection->table('authors')->whereBetween('id', [1, 2])->orderByDesc('id')->limit(1)->first());

        $books = $connection->table('books');
        $note('book', $books->insertGetId([
            'author_id' => 1, 'title' => 'One', 'price' => 12.5, 'weight' => 0.75, 'tags' => '["a", "b"]', 'published' => '2024-02-29',
            'seen' => new \DateTimeImmutable('2024-02-29 12:13:14'), 'notes' => \str_repeat('long ', 2_000),
        ]));
        $books->insert(['author_id' => 1, 'title' => 'Two', 'price' => '3.10', 'weight' => null, 'tags' => null]);
        $book = (array) $connection->table('books')->where('title', 'One')->first();
        // A server may write JSON with other white space; how a float is written is PDO's business.
        $note('types', \array_map('gettype', \array_diff_key($book, ['weight' => 0])));
        $note('values', \array_diff_key($book, ['notes' => 0, 'weight' => 0]) + ['weight' => (float) $book['weight'], 'notes' => \strlen($book['notes'])]);
        $note('sum', (float) $connection->table('books')->sum('price'));
        $note('avg', (float) $connection->table('books')->avg('price'));
        $note('joined', $connection->table('books')->join('authors', 'authors.id', '=', 'books.author_id')->orderBy('books.id')->get(['books.title', 'authors.name'])->all());
        $note('update', $connection->table('books')->where('title', 'Two')->update(['price' => 4, 'isbn' => '1']));
        $note('increment', $connection->table('books')->where('id', 1)->increment('price', 1.5));
        $note('exists', [$connection->table('books')->where('isbn', '1')->exists(), $connection->table('books')->where('isbn', '2')->exists()]);
        $note('raw', $connection->select('select count(*) as n, max(title) as t from books where price > ?', [1]));
        $note('named', $connection->select('select title from books where title = :title', ['title' => 'One']));
        $note('cursor', \iterator_to_array($connection->table('books')->orderBy('id')->select('id', 'title')->cursor()));
        $chunks = [];
        $connection->table('authors')->orderBy('id')->chunk(2, static function ($rows) use (&$chunks): void {
            $chunks[] = $rows->pluck('name')->all();
        });
        $note('chunks', $chunks);
        $note('paginate', $connection->table('authors')->orderBy('id')->forPage(2, 2)->pluck('name')->all());
        $note('fetch mode', $connection->getPdo()->query('select id, name from authors order by id')->fetchAll(\PDO::FETCH_KEY_PAIR));
        $note('fetch both', $connection->getPdo()->query('select id, name from authors order by id')->fetch(\PDO::FETCH_BOTH));
        $note('fetch column', $connection->getPdo()->query('select name from authors order by id')->fetchAll(\PDO::FETCH_COLUMN));
        $note('fetch group', $connection->getPdo()->query('select active, name from authors order by id')->fetchAll(\PDO::FETCH_GROUP | \PDO::FETCH_COLUMN));
        $note('fetch unique', $connection->getPdo()->query('select id, name from authors order by id')->fetchAll(\PDO::FETCH_UNIQUE | \PDO::FETCH_ASSOC));
        $note('fetch class', $connection->getPdo()->query('select name from authors order by id')->fetchAll(\PDO::FETCH_CLASS, \stdClass::class));
        $note('fetch object', $connection->getPdo()->query('select id, name from authors order by id')->fetchObject());
        $note('quote', $connection->selectOne('select ' . $connection->getPdo()->quote("it's a \"quote\"") . ' as q')->q);
        $note('driver', [$connection->getDriverName(), $connection->getPdo()->getAttribute(\PDO::ATTR_DRIVER_NAME)]);

        $errors = [
            'duplicate' => "insert into authors (name) values ('Ada')",
            'missing table' => 'select * from nothing',
            'missing column' => 'select nothing from books',
            'foreign key' => "insert into books (author_id, title) values (99, 'x')",
            'not null' => 'insert into books (title) values (null)',
            'syntax' => 'selec 1',
        ];
        foreach ($errors as $what => $sql) {
            try {
                $connection->statement($sql);
                $note($what, 'succeeded');
            } catch (QueryException $thrown) {
                $note($what, [$thrown->getCode(), $thrown->errorInfo[0] ?? null, $thrown->errorInfo[1] ?? null]);
            }
        }
        $note('transaction', $connection->transaction(static function () use ($connection): array {
            $connection->table('authors')->insert(['name' => 'In']);
            try {
                $connection->transaction(static function () use ($connection): void {
                    $connection->table('authors')->insert(['name' => 'Inner']);
                    $connection->table('authors')->insert(['name' => 'In']);
                });
            } catch (QueryException) {
            }
            $connection->beginTransaction();
            $connection->table('authors')->insert(['name' => 'Undone']);
            $connection->rollBack();

            return [$connection->transactionLevel(), $connection->getPdo()->inTransaction(), $connection->table('authors')->where('name', 'like', 'In%')->pluck('name')->all()];
        }));
        $note('after', [$connection->transactionLevel(), $connection->getPdo()->inTransaction(), $connection->table('authors')->where('name', 'Undone')->exists()]);
        $note('delete', $connection->table('authors')->where('id', 1)->delete());
        $note('cascade', $connection->table('books')->count());
        if ($kind !== 'sqlite') {
            // Of the session, not of the other in the process.
            $note('lock', $connection->transaction(static fn() => $connection->table('authors')->where('id', 2)->lockForUpdate()->value('name')));
        }
        $schema->table('books', static fn(Blueprint $table) => $table->index('title'));
        $schema->rename('books', 'volumes');
        $note('renamed', [$schema->hasTable('books'), $schema->hasTable('volumes')]);
        $connection->table('volumes')->truncate();
        $schema->drop('volumes');
        $schema->drop('authors');

        return $seen;
    }

    /** @dataProvider fetches */
    #[DataProvider('fetches')]
    public function testARowHasTheFormThatItHasWithPdo(\Closure $fetch): void
    {
        $seen = [];
        foreach ([false, true] as $onWeft) {
            $pdo = $this->fresh(['driver' => 'sqlite', 'database' => ':memory:'], $onWeft)->getPdo();
            try {
                $seen[] = $fetch($pdo->query("select 1 as a, 'x' as b, 3 as c union all select 1, 'y', 4 union all select 2, 'z', 5"), $pdo);
            } catch (\PDOException | \Error $thrown) {
                $seen[] = $thrown instanceof \PDOException ? \PDOException::class : $thrown::class;
            }
        }

        self::assertEquals($seen[0], $seen[1]);
        self::assertSame(\print_r($seen[0], true), \print_r($seen[1], true));
    }

    public function testAClassOfRowsThatIsNotThereIsNamed(): void
    {
        $rows = $this->fresh(['driver' => 'sqlite', 'database' => ':memory:'])->getPdo()->query('select 1 as a');

        $this->expectException(\TypeError::class);
        $this->expectExceptionMessage('PDOStatement::fetchAll(): Argument #2 must be a valid class, "Nothing\\There" given');
        $rows->fetchAll(\PDO::FETCH_CLASS, 'Nothing\\There');
    }

    /** @return iterable<string, array{\Closure(\PDOStatement, \PDO): mixed}> */
    public static function fetches(): iterable
    {
        $all = [
            'BOTH' => [\PDO::FETCH_BOTH], 'NUM' => [\PDO::FETCH_NUM], 'ASSOC' => [\PDO::FETCH_ASSOC], 'OBJ' => [\PDO::FETCH_OBJ], 'NAMED' => [\PDO::FETCH_NAMED],
            'the default' => [], 'DEFAULT' => [\PDO::FETCH_DEFAULT],
            'COLUMN' => [\PDO::FETCH_COLUMN], 'COLUMN 2' => [\PDO::FETCH_COLUMN, 2], 'COLUMN 9' => [\PDO::FETCH_COLUMN, 9], 'COLUMN -1' => [\PDO::FETCH_COLUMN, -1],
            'GROUP' => [\PDO::FETCH_GROUP], 'GROUP NUM' => [\PDO::FETCH_GROUP | \PDO::FETCH_NUM], 'GROUP ASSOC' => [\PDO::FETCH_GROUP | \PDO::FETCH_ASSOC],
            'GROUP OBJ' => [\PDO::FETCH_GROUP | \PDO::FETCH_OBJ], 'GROUP NAMED' => [\PDO::FETCH_GROUP | \PDO::FETCH_NAMED],
            'UNIQUE' => [\PDO::FETCH_UNIQUE], 'UNIQUE NUM' => [\PDO::FETCH_UNIQUE | \PDO::FETCH_NUM], 'UNIQUE ASSOC' => [\PDO::FETCH_UNIQUE | \PDO::FETCH_ASSOC],
            'UNIQUE OBJ' => [\PDO::FETCH_UNIQUE | \PDO::FETCH_OBJ],
            'GROUP COLUMN' => [\PDO::FETCH_GROUP | \PDO::FETCH_COLUMN], 'GROUP COLUMN 0' => [\PDO::FETCH_GROUP | \PDO::FETCH_COLUMN, 0],
            'GROUP COLUMN 1' => [\PDO::FETCH_GROUP | \PDO::FETCH_COLUMN, 1], 'GROUP COLUMN 2' => [\PDO::FETCH_GROUP | \PDO::FETCH_COLUMN, 2],
            'GROUP COLUMN 9' => [\PDO::FETCH_GROUP | \PDO::FETCH_COLUMN, 9],
            'UNIQUE COLUMN' => [\PDO::FETCH_UNIQUE | \PDO::FETCH_COLUMN], 'UNIQUE COLUMN 0' => [\PDO::FETCH_UNIQUE | \PDO::FETCH_COLUMN, 0],
            'UNIQUE COLUMN 1' => [\PDO::FETCH_UNIQUE | \PDO::FETCH_COLUMN, 1], 'UNIQUE COLUMN 2' => [\PDO::FETCH_UNIQUE | \PDO::FETCH_COLUMN, 2],
            'KEY_PAIR of three' => [\PDO::FETCH_KEY_PAIR], 'INTO' => [\PDO::FETCH_INTO], 'LAZY' => [\PDO::FETCH_LAZY], 'unknown' => [99],
            'CLASS' => [\PDO::FETCH_CLASS, Fetched::class], 'CLASS with arguments' => [\PDO::FETCH_CLASS, Fetched::class, [7]],
            'CLASS late' => [\PDO::FETCH_CLASS | \PDO::FETCH_PROPS_LATE, Fetched::class, [7]], 'CLASS of nothing' => [\PDO::FETCH_CLASS],
            'late without a CLASS' => [\PDO::FETCH_PROPS_LATE | \PDO::FETCH_NUM], 'GROUP and UNIQUE' => [\PDO::FETCH_GROUP | \PDO::FETCH_UNIQUE],
            'CLASS without a constructor' => [\PDO::FETCH_CLASS, \stdClass::class, [1]],
            'GROUP CLASS' => [\PDO::FETCH_GROUP | \PDO::FETCH_CLASS, Fetched::class], 'UNIQUE CLASS' => [\PDO::FETCH_UNIQUE | \PDO::FETCH_CLASS, Fetched::class],
            'FUNC' => [\PDO::FETCH_FUNC, static fn(mixed ...$row): array => $row], 'FUNC by name' => [\PDO::FETCH_FUNC, 'max'], 'FUNC of nothing' => [\PDO::FETCH_FUNC],
            'FUNC that is none' => [\PDO::FETCH_FUNC, 'nothing_there'], 'GROUP FUNC' => [\PDO::FETCH_GROUP | \PDO::FETCH_FUNC, static fn(mixed ...$row): array => $row],
        ];
        foreach ($all as $name => $arguments) {
            yield "all $name" => [static fn(\PDOStatement $rows): array => $rows->fetchAll(...$arguments)];
        }
        foreach ([\PDO::FETCH_BOTH, \PDO::FETCH_NUM, \PDO::FETCH_ASSOC, \PDO::FETCH_OBJ, \PDO::FETCH_NAMED, \PDO::FETCH_COLUMN, \PDO::FETCH_KEY_PAIR, \PDO::FETCH_FUNC, 99, \PDO::FETCH_INTO, \PDO::FETCH_CLASS] as $mode) {
            yield "one of mode $mode" => [static fn(\PDOStatement $rows): array => [$rows->fetch($mode), $rows->fetch($mode)]];
        }
        yield 'LAZY' => [static fn(\PDOStatement $rows): mixed => $rows->fetch(\PDO::FETCH_LAZY)->b];
        yield 'pairs' => [static fn(\PDOStatement $_, \PDO $pdo): array => $pdo->query("select 'a', 1 union all select 'b', 2 union all select 'a', 3")->fetchAll(\PDO::FETCH_KEY_PAIR)];
        yield 'a pair' => [static fn(\PDOStatement $_, \PDO $pdo): array => $pdo->query("select 'a', 1")->fetch(\PDO::FETCH_KEY_PAIR)];
        yield 'columns of one name' => [static fn(\PDOStatement $_, \PDO $pdo): array => $pdo->query('select 1 a, 2 a, 3 b')->fetchAll(\PDO::FETCH_NAMED)];
        yield 'the class of a column' => [static fn(\PDOStatement $_, \PDO $pdo): array => $pdo->query('select ' . $pdo->quote(Fetched::class) . ", 5 a union all select 'stdClass', 6")->fetchAll(\PDO::FETCH_CLASS | \PDO::FETCH_CLASSTYPE)];
        yield 'a column' => [static fn(\PDOStatement $rows): array => [$rows->fetchColumn(), $rows->fetchColumn(1), $rows->fetchColumn(2), $rows->fetchColumn()]];
        yield 'a column that is not there' => [static fn(\PDOStatement $rows): mixed => $rows->fetchColumn(3)];
        yield 'an object' => [static fn(\PDOStatement $rows): mixed => [$rows->fetchObject(Fetched::class, [8]), $rows->fetchObject(), $rows->fetchObject(), $rows->fetchObject()]];
        yield 'private properties' => [static fn(\PDOStatement $rows): mixed => $rows->fetchObject(FetchedChild::class)];
        $modes = [
            'into an object' => [\PDO::FETCH_INTO, new \stdClass()], 'into nothing' => [\PDO::FETCH_INTO], 'column' => [\PDO::FETCH_COLUMN, 1], 'column of nothing' => [\PDO::FETCH_COLUMN],
            'class' => [\PDO::FETCH_CLASS, Fetched::class, [9]], 'class of nothing' => [\PDO::FETCH_CLASS],
            'class with null' => [\PDO::FETCH_CLASS, Fetched::class, null],
            'numbers' => [\PDO::FETCH_NUM], 'a function' => [\PDO::FETCH_FUNC], 'unknown' => [99],
        ];
        foreach ($modes as $name => $arguments) {
            $set = static fn(\PDOStatement $rows): mixed => $rows->setFetchMode(...\array_map(static fn(mixed $argument): mixed => \is_object($argument) ? clone $argument : $argument, $arguments));
            yield "set to $name, one" => [static fn(\PDOStatement $rows): array => [$set($rows), $rows->fetch()]];
            // PHP 8.4 frees the object too often.
            if ($name !== 'into an object') {
                yield "set to $name, all" => [static fn(\PDOStatement $rows): array => [$set($rows), $rows->fetchAll()]];
            }
            yield "set to $name, each" => [static fn(\PDOStatement $rows): array => [$set($rows), \iterator_to_array($rows)]];
        }
        yield 'as the query says' => [static fn(\PDOStatement $_, \PDO $pdo): array => \iterator_to_array($pdo->query('select 1, 2 union all select 3, 4', \PDO::FETCH_COLUMN, 1))];
        yield 'the text of the statement' => [static fn(\PDOStatement $rows, \PDO $pdo): array => [$rows->queryString, $pdo->prepare('select ?')->queryString]];
        yield 'a text that is not to be changed' => [static function (\PDOStatement $rows): void {
            $rows->queryString = 'select 2';
        }];
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testModelsAreStoredAndFoundWithTheirRelations(string $kind): void
    {
        $manager = $this->manager($kind);
        $manager->schema()->create('notes', static function (Blueprint $table): void {
            $table->increments('id');
            $table->unsignedInteger('parent_id')->nullable();
            $table->string('text');
            $table->json('meta')->nullable();
            $table->timestamps();
            $table->softDeletes();
        });
        $parent = Note::create(['text' => 'parent', 'meta' => ['colour' => 'red', 'sizes' => [1, 2]]]);
        $parent->children()->createMany([['text' => 'first'], ['text' => 'second']]);

        self::assertSame(['first', 'second'], Note::with('children')->find($parent->id)->children->pluck('text')->all());
        // MySQL orders the keys of an object.
        self::assertEquals(['colour' => 'red', 'sizes' => [1, 2]], Note::find($parent->id)->meta);
        self::assertSame('parent', Note::where('text', 'second')->first()->parent->text);
        self::assertInstanceOf(\DateTimeInterface::class, Note::find($parent->id)->created_at);
        Note::where('text', 'first')->delete();
        self::assertSame(2, Note::count());
        self::assertSame(3, Note::withTrashed()->count());
        self::assertSame(1, Note::whereHas('children')->count());
        self::assertSame('parent', Note::firstOrCreate(['text' => 'parent'])->text);
        self::assertSame(2, Note::paginate(1, ['*'], 'page', 1)->total());
    }

    /** @dataProvider servers */
    #[DataProvider('servers')]
    public function testTasksShareThePoolAndHoldAConnectionOnlyForAStatementOrATransaction(string $kind): void
    {
        $connections = \array_map(fn(int $_): Connection => $this->connection($kind, true, 3), \range(1, 12));
        $connections[0]->getSchemaBuilder()->create('items', static fn(Blueprint $table) => $table->integer('id')->primary());
        $pdo = $connections[0]->getPdo();
        self::assertInstanceOf(Pdo::class, $pdo);
        $database = $pdo->database();

        run(static function () use ($connections, $database): void {
            all(\array_map(static fn(int $id): \Closure => static function () use ($connections, $id): void {
                $connections[$id]->transaction(static function (Connection $connection) use ($id): void {
                    $connection->table('items')->insert(['id' => $id]);
                    self::assertSame($id, (int) $connection->table('items')->where('id', $id)->value('id'));
                });
            }, \array_keys($connections)));
            self::assertSame(0, $database->stats()['in_use']);
        });

        self::assertSame(12, $connections[0]->table('items')->count());
        self::assertLessThanOrEqual(3, $database->stats()['total']);
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testATransactionOfOneTaskIsNotSeenByAnother(string $kind): void
    {
        [$writer, $reader] = [$this->connection($kind, true), $this->connection($kind, true)];
        $writer->getSchemaBuilder()->create('items', static fn(Blueprint $table) => $table->integer('id')->primary());

        $seen = run(static function () use ($writer, $reader): array {
            [$inserted, $looked] = [new Channel(1), new Channel(1)];
            $writing = async(static function () use ($writer, $inserted, $looked): void {
                $writer->transaction(static function (Connection $connection) use ($inserted, $looked): void {
                    $connection->table('items')->insert(['id' => 1]);
                    $inserted->send(true);
                    $looked->receive();
                });
            });
            $inserted->receive();
            $before = $reader->table('items')->count();
            $looked->send(true);
            $writing->await();

            return [$before, $reader->table('items')->count()];
        });

        self::assertSame([0, 1], $seen);
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testATransactionIsThatOfTheTaskThatHasBegunIt(string $kind): void
    {
        $connection = $this->connection($kind, true);
        $connection->getSchemaBuilder()->create('items', static fn(Blueprint $table) => $table->integer('id')->primary());
        $attempts = [
            'a transaction' => static fn() => $connection->transaction(static fn() => $connection->table('items')->insert(['id' => 2])),
            'a statement' => static fn() => $connection->table('items')->insert(['id' => 3]),
            'begin' => static fn() => $connection->getPdo()->beginTransaction(),
            'commit' => static fn() => $connection->commit(),
            'a rollback' => static fn() => $connection->rollBack(),
        ];

        run(static function () use ($connection, $attempts): void {
            $connection->beginTransaction();
            $connection->table('items')->insert(['id' => 1]);
            foreach ($attempts as $name => $attempt) {
                $refused = async(static function () use ($attempt): string {
                    try {
                        $attempt();
                    } catch (\PDOException $refused) {
                        return $refused->getMessage();
                    }

                    return 'nothing was refused';
                })->await();
                self::assertStringContainsString('give each task beside it a connection of its own', $refused, $name);
            }
            $connection->commit();
            async(static fn() => $connection->table('items')->insert(['id' => 4]))->await();
        });

        self::assertSame([1, 4], $connection->table('items')->orderBy('id')->pluck('id')->map(\intval(...))->all());
        self::assertSame(0, $connection->transactionLevel());
    }

    /** @dataProvider servers */
    #[DataProvider('servers')]
    public function testAConnectionThatTheServerHasClosedIsReplacedUnlessATransactionWasOpen(string $kind): void
    {
        $connection = $this->connection($kind, true, 1);
        $connection->getSchemaBuilder()->create('items', static fn(Blueprint $table) => $table->integer('id')->primary());
        $killer = $this->connection($kind, true, 2);
        $own = $kind === 'postgres' ? 'select pg_backend_pid() as id' : 'select connection_id() as id';
        $kill = static fn(int $id) => $kind === 'postgres' ? $killer->select("select pg_terminate_backend($id)") : $killer->unprepared("kill $id");

        $kill((int) $connection->selectOne($own)->id);
        self::assertSame(0, $connection->table('items')->count());

        try {
            $connection->transaction(static function (Connection $connection) use ($kill, $own): void {
                $connection->table('items')->insert(['id' => 1]);
                $kill((int) $connection->selectOne($own)->id);
                $connection->table('items')->insert(['id' => 2]);
            });
            self::fail('the transaction went on without its connection');
        } catch (QueryException $lost) {
            self::assertMatchesRegularExpression('/server has gone away|no connection to the server/', $lost->getMessage());
        }
        self::assertSame(0, $connection->transactionLevel());
        self::assertSame([], $connection->table('items')->pluck('id')->all());
        $connection->table('items')->insert(['id' => 3]);
        self::assertSame([3], $connection->table('items')->pluck('id')->map(static fn($id): int => (int) $id)->all());
    }

    /** @dataProvider servers */
    #[DataProvider('servers')]
    public function testADeadlockIsRepeatedByLaravel(string $kind): void
    {
        $connection = $this->connection($kind, true);
        $connection->getSchemaBuilder()->create('items', static function (Blueprint $table): void {
            $table->integer('id')->primary();
            $table->integer('n');
        });
        $connection->table('items')->insert([['id' => 1, 'n' => 0], ['id' => 2, 'n' => 0]]);
        $others = [$this->connection($kind, true), $this->connection($kind, true)];

        run(static function () use ($others): void {
            $both = new \ArrayObject();
            all(\array_map(static fn(int $i): \Closure => static function () use ($others, $i, $both): void {
                $others[$i]->transaction(static function (Connection $connection) use ($i, $both): void {
                    $connection->table('items')->where('id', $i + 1)->increment('n');
                    $both->append($i);
                    while (\count($both) < 2) {
                        \Weft\delay(0.005);
                    }
                    $connection->table('items')->where('id', 2 - $i)->increment('n');
                }, 5);
            }, [0, 1]));
        });

        self::assertSame([2, 2], $connection->table('items')->orderBy('id')->pluck('n')->map(static fn($n): int => (int) $n)->all());
    }

    /** MySQL has another name for it than MariaDB 10. */
    private static function isolationOfMysql(Connection $connection): string
    {
        return $connection->selectOne("show session variables where variable_name in ('tx_isolation', 'transaction_isolation')")->Value;
    }

    public function testSettingsOfAConnectionHoldForEveryConnectionOfThePool(): void
    {
        $postgres = $this->connection('postgres', true, 2, ['timezone' => 'Asia/Tokyo', 'search_path' => ['odd name', 'public'], 'application_name' => 'it is me']);
        self::assertSame('Asia/Tokyo', $postgres->selectOne('show timezone')->TimeZone);
        self::assertSame('"odd name", "public"', $postgres->selectOne('show search_path')->search_path);
        self::assertSame('it is me', $postgres->selectOne('show application_name')->application_name);

        $mariadb = $this->connection('mariadb', true, 1, ['timezone' => '+05:00', 'strict' => true, 'charset' => 'utf8mb4', 'collation' => 'utf8mb4_bin', 'isolation_level' => 'SERIALIZABLE']);
        foreach ([1, 2] as $_) {
            $row = $mariadb->selectOne('select @@time_zone as zone, @@sql_mode as mode, @@collation_connection as collation');
            self::assertSame(['+05:00', 'utf8mb4_bin', 'SERIALIZABLE'], [$row->zone, $row->collation, self::isolationOfMysql($mariadb)]);
            self::assertStringContainsString('STRICT_TRANS_TABLES', $row->mode);
            // What a request sets is gone when it ends.
            $mariadb->statement("set time_zone = '+01:00'");
            $pdo = $mariadb->getPdo();
            self::assertInstanceOf(Pdo::class, $pdo);
            $pdo->reset();
        }
    }

    /** @dataProvider servers */
    #[DataProvider('servers')]
    public function testAConnectionIsUsableAfterATimeoutInANestedTransaction(string $kind): void
    {
        $connection = $this->connection($kind, true, 1);
        $slow = $kind === 'postgres' ? 'select pg_sleep(60)' : 'select sleep(60)';
        $nested = static fn() => $connection->transaction(static fn() => $connection->transaction(static fn() => $connection->select($slow)));

        $thrown = run(static function () use ($nested): ?\Throwable {
            try {
                timeout(0.1, $nested);
            } catch (\Throwable $thrown) {
                return $thrown;
            }

            return null;
        });

        self::assertNotNull($thrown);
        self::assertSame(0, $connection->transactionLevel());
        self::assertEquals(1, $connection->selectOne('select 1 as one')->one);
        self::assertSame('done', $connection->transaction(static fn(): string => 'done'));
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testATransactionThatHasLostItsInnerOneByATimeoutStoresNothing(string $kind): void
    {
        $connection = $this->connection($kind, true, 1);
        $connection->getSchemaBuilder()->create('items', static fn(Blueprint $table) => $table->integer('id')->primary());
        $slow = match ($kind) {
            'postgres' => 'select pg_sleep(600)',
            'mariadb' => 'select sleep(600)',
            'sqlite' => 'with recursive c(x) as (select 1 union all select x + 1 from c) insert into items select count(*) from c',
        };

        foreach (['a statement', 'the commit'] as $next) {
            try {
                run(static fn() => $connection->transaction(static function () use ($connection, $slow, $next): void {
                    $connection->table('items')->insert(['id' => 1]);
                    try {
                        timeout(0.1, static fn() => $connection->transaction(static fn() => $connection->statement($slow)));
                        self::fail('the statement was not cancelled');
                    } catch (TimeoutException) {
                    }
                    self::assertSame(1, $connection->transactionLevel());
                    $next === 'the commit' || $connection->table('items')->insert(['id' => 2]);
                }));
                self::fail("$next succeeded without what was before it");
            } catch (\PDOException $lost) {
                self::assertStringContainsString('rolled back', $lost->getMessage());
            }
            self::assertSame(0, $connection->transactionLevel());
            self::assertSame([], $connection->table('items')->pluck('id')->all(), $next);
        }
        self::assertTrue($connection->transaction(static fn(): bool => $connection->table('items')->insert(['id' => 3])));
    }

    /** @dataProvider servers */
    #[DataProvider('servers')]
    public function testAConnectionIsUsableAfterATimeoutOfAStatementInASessionWithSettings(string $kind): void
    {
        $connection = $this->connection($kind, true, 1);
        $connection->statement($kind === 'postgres' ? "set application_name = 'mine'" : 'set @a = 1');
        try {
            run(static fn() => timeout(0.1, static fn() => $connection->select($kind === 'postgres' ? 'select pg_sleep(60)' : 'select sleep(60)')));
            self::fail('the statement was not cancelled');
        } catch (TimeoutException | QueryException) {
        }

        self::assertEquals(1, $connection->selectOne('select 1 as one')->one);
    }

    public function testAStatementInATransactionIsPreparedAnewAfterItsTableHasChanged(): void
    {
        $connection = $this->connection('postgres', true, 1);
        $connection->getSchemaBuilder()->create('items', static fn(Blueprint $table) => $table->integer('id')->primary());
        $connection->table('items')->insert(['id' => 1]);
        $work = static fn() => $connection->transaction(static function () use ($connection): int {
            $connection->select('select 1');

            return $connection->table('items')->where('id', 1)->get()->count();
        });
        self::assertSame(1, $work());
        $this->connection('postgres', true, 2)->getSchemaBuilder()->table('items', static fn(Blueprint $table) => $table->string('name')->nullable());

        try {
            $work();
            self::fail('the outdated statement was answered: the test shows nothing');
        } catch (QueryException $stale) {
            self::assertSame('0A000', $stale->getCode());
        }
        self::assertSame(1, $work());
    }

    public function testAllTablesOfAnOpenSqliteFileAreDropped(): void
    {
        $file = \tempnam(\sys_get_temp_dir(), 'weft-fresh');
        try {
            $connection = new SQLiteConnection(static fn(): Pdo => (new Connector())->connect(['driver' => 'sqlite', 'database' => $file]), $file, '', ['driver' => 'sqlite']);
            $schema = $connection->getSchemaBuilder();
            $make = static function () use ($schema, $connection): void {
                $connection->statement('PRAGMA foreign_keys = ON');
                $schema->create('authors', static function (Blueprint $table): void {
                    $table->increments('id');
                });
                $schema->create('books', static function (Blueprint $table): void {
                    $table->increments('id');
                    $table->unsignedInteger('author_id')->index();
                    $table->foreign('author_id')->references('id')->on('authors');
                });
                $connection->statement('create view titles as select id from books');
                $connection->table('authors')->insert(['id' => 1]);
                $connection->table('books')->insert(['id' => 1, 'author_id' => 1]);
            };
            foreach (['first', 'again'] as $time) {
                $make();
                $schema->dropAllViews();
                $schema->dropAllTables();
                self::assertFalse($schema->hasTable('authors'), $time);
                self::assertSame([], $connection->select("select name from sqlite_master where name not like 'sqlite_%'"), $time);
            }
            $make();
            self::assertSame(1, $connection->table('books')->count());
            self::assertSame('ok', $connection->selectOne('PRAGMA integrity_check')->integrity_check);
        } finally {
            \array_map(static fn(string $name): bool => @\unlink($name), (array) \glob("$file*"));
        }
    }

    public function testATextIsQuotedWhateverTheModeOfTheServerSaysOfBackslashes(): void
    {
        foreach (['', 'NO_BACKSLASH_ESCAPES'] as $mode) {
            $connection = $this->connection('mariadb', true, 1, ['modes' => [$mode]]);
            foreach (['\\', "\\' OR 1=1 -- ", "it's", "a\nb\0c\x1a\"", 'é\\é'] as $text) {
                self::assertSame($text, $connection->selectOne("select {$connection->getPdo()->quote($text)} as text")->text, "$mode: $text");
            }
            $connection->disconnect();
        }
    }

    public function testTheLastIdOfSqliteIsThatOfTheLastRowAsWithPdo(): void
    {
        $statements = [
            'insert into items (n) values (1)', '/* app:shop */ insert into items (n) values (2)', "-- app\ninsert into items (n) values (3)",
            'insert into items (n) values (4) returning id', 'insert into items select 9, 9 where 0', 'update items set n = 5', 'select 1',
        ];
        $ids = [];
        foreach ([new \PDO('sqlite::memory:'), $this->fresh(['driver' => 'sqlite', 'database' => ':memory:'])->getPdo()] as $pdo) {
            $pdo->exec('create table items (id integer primary key, n int)');
            $ids[] = \array_map(static function (string $statement) use ($pdo): string {
                $made = $pdo->query($statement);
                self::assertNotFalse($made);
                $made->fetchAll();

                return (string) $pdo->lastInsertId();
            }, $statements);
        }

        self::assertSame(['1', '2', '3', '4', '4', '4', '4'], $ids[0]);
        self::assertSame($ids[0], $ids[1]);
    }

    public function testTheLastIdOfMariaDbIsThatOfTheLastStatementAsWithPdo(): void
    {
        $ids = [];
        foreach ([false, true] as $onWeft) {
            $connection = $this->connection('mariadb', $onWeft, 1);
            $schema = $connection->getSchemaBuilder();
            $schema->dropIfExists('counted');
            $schema->dropIfExists('plain');
            $schema->create('counted', static function (Blueprint $table): void {
                $table->increments('id');
                $table->string('name')->unique();
            });
            $schema->create('plain', static fn(Blueprint $table) => $table->integer('id')->primary());
            foreach (
                [
                "insert into counted (name) values ('a')", "insert into counted (name) values ('b')", 'insert into plain values (5)', "insert ignore into counted (name) values ('a')",
                "/* c */ insert into counted (name) values ('c')", "update counted set name = 'd' where name = 'a'", 'update counted set id = last_insert_id(2026) where id = 1',
                ] as $sql
            ) {
                $connection->unprepared($sql);
                $ids[(int) $onWeft][] = [$sql, (string) $connection->getPdo()->lastInsertId()];
            }
            $connection->disconnect();
        }

        self::assertSame($ids[0], $ids[1]);
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testTasksThatConnectAtOnceShareOnePool(string $kind): void
    {
        $configuration = $this->configuration($kind) + ['pool' => ['name' => \uniqid('shared')]];

        $databases = run(static fn(): array => all(\array_fill(0, 5, static fn(): Database => LaravelDatabases::of($configuration))));

        self::assertCount(1, \array_unique(\array_map(\spl_object_id(...), $databases)));
    }

    /** @dataProvider databases */
    #[DataProvider('databases')]
    public function testThePoolIsClosedWithTheLastConnectionThatIsPurged(string $kind): void
    {
        $configuration = $this->configuration($kind) + ['prefix' => '', 'pool' => ['name' => \uniqid('purged')], 'application_name' => 'purged tenant'];
        $manager = $this->managerOf(['tenant' => $configuration, 'again' => $configuration]);
        self::assertEquals(1, $manager->connection('tenant')->selectOne('select 1 as one')->one);
        self::assertEquals(1, $manager->connection('again')->selectOne('select 1 as one')->one);
        $pool = \WeakReference::create(LaravelDatabases::of($configuration));
        $observer = $kind === 'sqlite' ? null : $this->connection($kind, false);
        $sessions = static fn(): int => match ($kind) {
            'postgres' => \count($observer->select("select 1 from pg_stat_activity where application_name = 'purged tenant'")),
            'mariadb' => \count($observer->select('select 1 from information_schema.processlist where db = database() and id <> connection_id()')),
            'sqlite' => \count(\array_filter(\array_map(static fn(string $file): string => (string) @\readlink($file), \glob('/proc/self/fd/*') ?: []), static fn(string $file): bool => \str_starts_with($file, $configuration['database']))),
        };
        self::assertGreaterThan(0, $sessions());

        $manager->purge('tenant');
        self::assertNotNull($pool->get(), 'the other connection uses it');
        self::assertEquals(1, $manager->connection('again')->selectOne('select 1 as one')->one);
        $manager->purge('again');

        self::assertNull($pool->get());
        Timing::until(static fn(): bool => $sessions() === 0, 'the sessions end');
        self::assertEquals(1, $manager->connection('tenant')->selectOne('select 1 as one')->one, 'it connects anew');
    }

    /** @return iterable<string, array{string, list<string>, string}> statements, and a query for what they leave behind */
    public static function sessions(): iterable
    {
        $insert = 'insert into items values (1)';
        $rows = 'select count(*) as seen from items';
        $both = [
            'BEGIN' => [['BEGIN', $insert], $rows],
            'BEGIN after a comment' => [["/* c */ -- d\n begin", $insert], $rows],
            'START TRANSACTION' => [['START TRANSACTION', $insert], $rows],
            'a temporary table' => [['CREATE TEMPORARY TABLE drafts (id INT)', 'INSERT INTO drafts VALUES (1)', 'ALTER TABLE drafts RENAME TO others'], $rows],
            'a temporary table of the same name' => [['CREATE TEMPORARY TABLE items (id INT)', $insert, 'INSERT INTO items VALUES (2)'], $rows],
        ];
        $postgres = [
            'read only' => [['SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY'], "select current_setting('default_transaction_read_only') as seen"],
            'search_path' => [['SET search_path TO pg_catalog'], "select current_setting('search_path') as seen"],
            'set_config()' => [["SELECT set_config('a.b', 'c', false)"], "select coalesce(current_setting('a.b', true), '') as seen"],
            'a setting in a transaction' => [['BEGIN', "SET application_name = 'other'", 'COMMIT'], "select current_setting('application_name') as seen"],
            'an advisory lock' => [['SELECT pg_advisory_lock(4711)'], "select count(*) as seen from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()"],
            'a prepared statement' => [['PREPARE p AS SELECT 1'], "select count(*) as seen from pg_prepared_statements where name = 'p'"],
            'LISTEN' => [['LISTEN items'], 'select count(*) as seen from pg_listening_channels()'],
            'a cursor' => [['DECLARE c CURSOR WITH HOLD FOR SELECT 1'], 'select count(*) as seen from pg_cursors where is_holdable'],
            'LOCK TABLE' => [['BEGIN', 'LOCK TABLE items'], "select count(*) as seen from pg_locks where mode = 'AccessExclusiveLock' and pid = pg_backend_pid()"],
            'COMMIT AND CHAIN' => [['BEGIN', 'COMMIT AND CHAIN', $insert], $rows],
        ];
        $mariadb = [
            'autocommit' => [['SET autocommit = 0', $insert], $rows],
            'the mode' => [["SET SESSION sql_mode = 'ANSI'"], 'select @@sql_mode as seen'],
            'a variable' => [['SET @mine = 1'], 'select @mine as seen'],
            'a variable of a query' => [['SELECT 1 INTO @mine'], 'select @mine as seen'],
            'a lock by name' => [["SELECT GET_LOCK('weft-items', 1)"], "select is_used_lock('weft-items') as seen"],
            'LOCK TABLES' => [['LOCK TABLES items WRITE'], "select count(*) as seen from information_schema.tables where table_name = 'items' and table_schema = database()"],
            'another database' => [['USE information_schema'], 'select database() as seen'],
            'read only' => [['SET SESSION TRANSACTION READ ONLY'], "show session variables where variable_name in ('tx_read_only', 'transaction_read_only')"],
            'XA' => [["XA START 'weft-items'", $insert], $rows],
        ];
        foreach (['PostgreSQL' => ['postgres', $both + $postgres], 'MariaDB or MySQL' => ['mariadb', $both + $mariadb]] as $name => [$kind, $statements]) {
            foreach ($statements as $what => $set) {
                yield "$name, $what" => [$kind, ...$set];
            }
        }
    }

    /**
     * @param list<string> $statements
     *
     * @dataProvider sessions
     */
    #[DataProvider('sessions')]
    public function testWhatAStatementLeavesInASessionIsNotLentToAnother(string $kind, array $statements, string $query): void
    {
        $name = \uniqid('session');
        [$one, $other] = [$this->connection($kind, true, 1, ['pool' => ['size' => 1, 'name' => $name]]), $this->connection($kind, true, 1, ['pool' => ['size' => 1, 'name' => $name]])];
        $one->unprepared('create table items (id int)');
        [$pdo, $of] = [$one->getPdo(), $other->getPdo()];
        self::assertInstanceOf(Pdo::class, $pdo);
        self::assertInstanceOf(Pdo::class, $of);
        self::assertSame($pdo->database(), $of->database());
        $before = $other->selectOne($query);
        $of->reset();
        foreach ($statements as $statement) {
            $one->unprepared($statement);
        }
        self::assertSame(1, $pdo->database()->stats()['in_use'], 'the session is kept');

        $pdo->reset();

        self::assertEquals($before, $other->selectOne($query));
        $other->insert('insert into items values (5)');
        self::assertSame([5], $other->table('items')->pluck('id')->all());
    }

    public function testArraysOfPostgresAreTextAsWithPdo(): void
    {
        $seen = [];
        foreach ([false, true] as $onWeft) {
            $connection = $this->connection('postgres', $onWeft, 1);
            $connection->unprepared('drop table if exists lists');
            $connection->unprepared('create table lists (id int, numbers int[], words text[], fractions float8[], flags bool[], amounts numeric[], times timestamp[], documents jsonb[], bytes bytea[], ids uuid[])');
            $connection->insert('insert into lists values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)', [
                1, '{1,2,NULL}', '{a,"b c","d\\"e",NULL,"NULL",""}', '{0.5,1e300,1e-7,-1.25e20,123456,1e15,NaN,-Infinity}', '{t,f}', '{1.10,2}', '{"2024-01-02 03:04:05"}',
                '{"{\\"a\\": 1}"}', '{"\\\\x4142"}', '{0190a5b0-7c4d-7abc-8def-0123456789ab}',
            ]);
            $connection->table('lists')->insert(['id' => 2, 'numbers' => '{{1,2},{3,4}}', 'words' => '{}']);
            $seen[] = [
                $connection->table('lists')->orderBy('id')->get()->all(),
                $connection->table('lists')->whereRaw('numbers @> ?', ['{2}'])->count(),
                $connection->table('lists')->whereRaw('? = any(words)', ['b c'])->count(),
                $connection->table('lists')->whereRaw('id = any(?::int[])', ['{1,2}'])->count(),
            ];
            $connection->disconnect();
        }

        self::assertEquals($seen[0], $seen[1]);
        self::assertSame('{0.5,1e+300,1e-07,-1.25e+20,123456,1e+15,NaN,-Infinity}', $seen[1][0][0]->fractions);
    }

    public function testTransactionsOfSqliteMayBeTextAsThoseOfServers(): void
    {
        $connection = $this->fresh(['driver' => 'sqlite', 'database' => ':memory:']);
        $pdo = $connection->getPdo();
        $connection->statement('create table notes (text varchar)');
        foreach (['BEGIN' => 'COMMIT', "-- c\n begin immediate" => 'end transaction;', 'BEGIN TRANSACTION' => '/* c */ COMMIT TRANSACTION', 'begin deferred transaction' => 'END'] as $begin => $end) {
            $connection->unprepared($begin);
            self::assertTrue($pdo->inTransaction(), $begin);
            $connection->unprepared('SAVEPOINT a');
            $connection->insert('insert into notes values (?)', ['undone']);
            $connection->unprepared('ROLLBACK TRANSACTION TO a');
            $connection->insert('insert into notes values (?)', [$begin]);
            $connection->unprepared($end);
            self::assertFalse($pdo->inTransaction(), $end);
            $connection->unprepared('BEGIN');
            $connection->insert('insert into notes values (?)', ['undone']);
            $connection->unprepared('ROLLBACK');
        }
        self::assertSame(['BEGIN', "-- c\n begin immediate", 'BEGIN TRANSACTION', 'begin deferred transaction'], $connection->table('notes')->pluck('text')->all());

        foreach (['COMMIT' => 'There is no active transaction', 'SAVEPOINT a' => 'A savepoint of SQLite needs a transaction that was begun before, by beginTransaction() or BEGIN'] as $statement => $complaint) {
            try {
                $connection->unprepared($statement);
                self::fail("$statement ran outside of a transaction");
            } catch (QueryException $refused) {
                self::assertStringContainsString($complaint, $refused->getMessage());
            }
        }
        $pdo->beginTransaction();
        $this->expectException(QueryException::class);
        $this->expectExceptionMessage('There is already an active transaction');
        $connection->unprepared('BEGIN');
    }

    /** From Laravel 12 on, with PHP 8.4, SQLiteConnection begins so. */
    public function testATransactionOfSqliteBegunByAStatementIsATransaction(): void
    {
        $connection = $this->fresh(['driver' => 'sqlite', 'database' => ':memory:']);
        $pdo = $connection->getPdo();
        $connection->statement('create table notes (text varchar)');

        $pdo->exec('BEGIN DEFERRED TRANSACTION');
        self::assertTrue($pdo->inTransaction());
        $connection->insert("insert into notes values ('one')");
        $pdo->rollBack();
        // As `'transaction_mode' => 'immediate'` has it.
        $pdo->exec('BEGIN immediate TRANSACTION');
        $connection->insert("insert into notes values ('two')");
        $pdo->commit();

        self::assertSame(['two'], $connection->table('notes')->pluck('text')->all());
    }

    public function testForeignKeysOfSqliteAreCheckedWhereTheConnectionSaysSo(): void
    {
        foreach ([true, false, null] as $checked) {
            $connection = $this->fresh(['driver' => 'sqlite', 'database' => ':memory:', 'foreign_key_constraints' => $checked]);
            self::assertSame((int) $checked, (int) $connection->selectOne('pragma foreign_keys')->foreign_keys, \var_export($checked, true));
        }
    }

    public function testAServerThatIsDownAndAMissingFileAreNamed(): void
    {
        $down = $this->fresh(['driver' => 'pgsql', 'host' => '127.0.0.1', 'port' => 1, 'database' => 'none', 'username' => 'nobody']);
        try {
            $down->select('select 1');
            self::fail('a server answered');
        } catch (QueryException $refused) {
            self::assertSame('08006', $refused->getCode());
            self::assertStringContainsString('Connection refused', $refused->getMessage());
        }

        $this->expectExceptionMessage('/nowhere/app.db');
        $this->fresh(['driver' => 'sqlite', 'database' => '/nowhere/app.db'])->select('select 1');
    }

    public function testTheSizeOfAPoolMayBeTextAsOfTheEnvironment(): void
    {
        self::assertEquals(1, $this->fresh(['driver' => 'sqlite', 'database' => ':memory:', 'pool' => ['size' => '3']])->selectOne('select 1 as one')->one);

        $this->expectException(UsageError::class);
        $this->expectExceptionMessageMatches('/^"pool" of the connection .*has the option "max", and no pool has that: there are size, sizeTotal, minimumIdle, name$/');
        $this->fresh(['driver' => 'sqlite', 'database' => ':memory:', 'pool' => ['max' => 3]])->getPdo();
    }

    public function testAnOptionOfAPoolThatIsEmptyHasItsDefault(): void
    {
        foreach (['', null] as $nothing) {
            $options = ['driver' => 'pgsql', 'host' => 'localhost', 'username' => 'nobody', 'pool' => ['size' => $nothing, 'sizeTotal' => $nothing, 'minimumIdle' => $nothing, 'name' => \uniqid('empty')]];

            self::assertSame(20, LaravelDatabases::of($options)->stats()['size']);
        }
    }

    /** @dataProvider servers */
    #[DataProvider('servers')]
    public function testAConnectionWithTheDriverWeftReadsAndWritesWhereLaravelSaysSo(string $kind): void
    {
        $dsn = $this->databaseDsn($kind);
        $url = (array) \parse_url($dsn);
        $connection = $this->onDsn([
            // A host of it would be found by nobody.
            'dsn' => \str_replace("@{$url['host']}", '@host.invalid', $dsn),
            'read' => ['host' => [$url['host'], $url['host']], 'pool' => ['name' => 'reads']],
            'write' => ['host' => $url['host'], 'pool' => ['name' => 'writes']],
            'sticky' => true,
        ]);
        $name = static function (\PDO $pdo): string {
            self::assertInstanceOf(Pdo::class, $pdo);

            return $pdo->database()->name();
        };
        self::assertSame('reads', $name($connection->getReadPdo()));
        self::assertSame('writes', $name($connection->getPdo()));
        $connection->select('select 1');
        self::assertSame([1, 0], [self::connections($connection->getReadPdo()), self::connections($connection->getPdo()) - 1]);

        $connection->statement('create table items (id int)');
        $connection->insert('insert into items values (1)');
        self::assertSame('writes', $name($connection->getReadPdo()), 'sticky');
    }

    public function testTheOtherHostsOfAConnectionAreTriedWhereOneIsDown(): void
    {
        $configuration = $this->configuration('postgres');
        $down = ['host.invalid', 'other.invalid', 'third.invalid'];
        for ($round = 0; $round < 4; $round++) {
            $connection = $this->fresh(['host' => [...$down, $configuration['host']]] + $configuration);
            self::assertSame(1, $connection->selectOne('select 1 as one')->one);
        }

        $this->expectException(\PDOException::class);
        $this->fresh(['host' => $down] + $configuration)->getPdo();
    }

    public function testSettingsOfAConnectionWithTheDriverWeftHoldForEveryConnectionOfThePool(): void
    {
        $postgres = $this->onDsn([
            'dsn' => $this->databaseDsn('postgres') . '&application_name=mine', 'timezone' => 'Asia/Tokyo', 'search_path' => ['odd name', 'public'], 'isolation_level' => 'SERIALIZABLE',
            'synchronous_commit' => 'off', 'charset' => 'utf8', 'pool' => ['size' => 1],
        ]);
        $mariadb = $this->onDsn([
            'dsn' => $this->databaseDsn('mariadb'), 'timezone' => '+05:00', 'strict' => true, 'charset' => 'utf8mb4', 'collation' => 'utf8mb4_bin', 'isolation_level' => 'SERIALIZABLE',
            'options' => [\PDO::ATTR_STRINGIFY_FETCHES => true], 'pool' => ['size' => 1],
        ]);
        foreach ([1, 2] as $_) {
            $settings = static fn(string $name): string => $postgres->selectOne("select current_setting('$name') as value")->value;
            self::assertSame(
                ['Asia/Tokyo', '"odd name", "public"', 'serializable', 'off', 'mine'],
                \array_map($settings, ['timezone', 'search_path', 'default_transaction_isolation', 'synchronous_commit', 'application_name']),
            );
            $row = $mariadb->selectOne('select @@time_zone as zone, @@sql_mode as mode, @@collation_connection as collation, 1 as one');
            self::assertSame(['+05:00', 'utf8mb4_bin', 'SERIALIZABLE', '1'], [$row->zone, $row->collation, self::isolationOfMysql($mariadb), $row->one]);
            self::assertStringContainsString('STRICT_TRANS_TABLES', $row->mode);
            // What a request sets is gone when it ends.
            $postgres->statement("set timezone = 'UTC'");
            $mariadb->statement("set time_zone = '+01:00'");
            foreach ([$postgres, $mariadb] as $connection) {
                $pdo = $connection->getPdo();
                self::assertInstanceOf(Pdo::class, $pdo);
                $pdo->reset();
            }
        }
        $sqlite = $this->onDsn(['dsn' => 'sqlite::memory:', 'foreign_key_constraints' => false, 'prefix' => 'own_']);
        self::assertSame([0, 'own_'], [$sqlite->selectOne('pragma foreign_keys')->foreign_keys, $sqlite->getTablePrefix()]);
    }

    /**
     * @param array<string, mixed> $options
     *
     * @dataProvider optionsWithoutEffect
     */
    #[DataProvider('optionsWithoutEffect')]
    public function testAnOptionThatWouldHaveNoEffectIsRefused(array $options, string $complaint): void
    {
        $this->expectException(UsageError::class);
        $this->expectExceptionMessage($complaint);
        $this->onDsn($options)->getPdo();
    }

    /** @return iterable<string, array{array<string, mixed>, string}> */
    public static function optionsWithoutEffect(): iterable
    {
        $postgres = ['dsn' => 'postgres://nobody@localhost/none'];
        yield 'of the DSN' => [$postgres + ['database' => 'app'], 'The connection "app" with the driver "weft" has "database": its "dsn" says that'];
        yield 'of the DSN, for reading' => [$postgres + ['read' => ['username' => 'reader']], 'has "username": its "dsn" says that'];
        yield 'of the DSN, for one of the writers' => [$postgres + ['read' => [], 'write' => [['sslmode' => 'require']]], 'has "sslmode": its "dsn" says that'];
        yield 'of MySQL' => [$postgres + ['collation' => 'utf8mb4_bin'], 'has "collation", which Weft\'s connections to this kind of database (pgsql) do not have'];
        yield 'of PostgreSQL' => [['dsn' => 'mysql://nobody@localhost/none', 'search_path' => 'app'], 'has "search_path"'];
        yield 'of servers' => [['dsn' => 'sqlite::memory:', 'timezone' => 'UTC'], 'has "timezone"'];
        yield 'the journal' => [['dsn' => 'sqlite::memory:', 'journal_mode' => 'delete'], 'has "journal_mode"'];
        yield 'another character set' => [$postgres + ['charset' => 'latin1'], 'latin1'];
        yield 'several kinds' => [$postgres + ['read' => ['dsn' => 'mysql://nobody@localhost/none']], 'The connection "app" has DSNs of several kinds of databases'];
        yield 'no DSN' => [['host' => 'localhost'], 'The connection "app" has the driver "weft" and needs a "dsn"'];
        yield 'silent errors' => [['dsn' => 'sqlite::memory:', 'options' => [\PDO::ATTR_ERRMODE => \PDO::ERRMODE_SILENT]], 'ATTR_ERRMODE'];
        yield 'empty text as null' => [['dsn' => 'sqlite::memory:', 'options' => [\PDO::ATTR_ORACLE_NULLS => \PDO::NULL_EMPTY_STRING]], 'ATTR_ORACLE_NULLS'];
        yield 'a class of statements' => [['dsn' => 'sqlite::memory:', 'options' => [\PDO::ATTR_STATEMENT_CLASS => [\PDOStatement::class]]], 'ATTR_STATEMENT_CLASS'];
        if (\extension_loaded('pdo_mysql')) {
            yield 'client certificates' => [['dsn' => 'mysql://nobody@localhost/none', 'options' => [PdoMysql::attribute('SSL_KEY') => '/key.pem']], 'MYSQL_ATTR_SSL_KEY, which Weft does not support'];
            yield 'TLS of the DSN' => [['dsn' => 'mysql://nobody@localhost/none', 'options' => [PdoMysql::attribute('SSL_CA') => '/ca.pem']], 'MYSQL_ATTR_SSL_CA: with the driver "weft" its "dsn" says that'];
        }
    }

    public function testAnotherCharacterSetThanUtf8IsRefused(): void
    {
        $this->expectException(UsageError::class);
        $this->expectExceptionMessage('latin1');
        $this->fresh(['driver' => 'mysql', 'host' => '127.0.0.1', 'database' => 'none', 'charset' => 'latin1'])->getPdo();
    }

    /** @param array<string, mixed> $configuration of the driver weft */
    private function onDsn(array $configuration): Connection
    {
        return (new DsnConnections(new Container(), new Connector()))->make(['driver' => 'weft'] + $configuration, 'app');
    }

    private static function connections(\PDO $pdo): int
    {
        return $pdo instanceof Pdo ? (int) $pdo->database()->stats()['total'] : -1;
    }

    /** @param array<string, array<string, mixed>> $connections */
    private function managerOf(array $connections): DatabaseManager
    {
        $container = new Container();
        $manager = new Manager($container);
        foreach ($connections as $name => $configuration) {
            $container->bind("db.connector.{$configuration['driver']}", static fn(): Connector => new Connector());
            $manager->addConnection($configuration, $name);
        }

        return $manager->getDatabaseManager();
    }

    private function manager(string $kind): Manager
    {
        $container = new Container();
        $manager = new Manager($container);
        $manager->addConnection($this->configuration($kind));
        $container->bind('db.connector.' . $this->configuration($kind)['driver'], static fn(): Connector => new Connector());
        $manager->setEventDispatcher(new Dispatcher($container));
        $manager->setAsGlobal();
        $manager->bootEloquent();
        Model::clearBootedModels();

        return $manager;
    }

    /** @param array<string, mixed> $more */
    private function connection(string $kind, bool $onWeft, int $size = 5, array $more = []): Connection
    {
        return $this->fresh($more + ['pool' => ['size' => $size]] + $this->configuration($kind, $onWeft ? '' : '-pdo'), $onWeft);
    }

    /** @param array<string, mixed> $configuration */
    private function fresh(array $configuration, bool $onWeft = true): Connection
    {
        $container = new Container();
        $manager = new Manager($container);
        $onWeft && $container->bind("db.connector.{$configuration['driver']}", static fn(): Connector => new Connector());
        $manager->addConnection($configuration + ['prefix' => '']);

        return $manager->getConnection();
    }

    /** @return array<string, mixed> of Laravel */
    private function configuration(string $kind, string $suffix = ''): array
    {
        $dsn = $this->databaseDsn($kind);
        if ($kind === 'sqlite') {
            // SQLite's own library and Weft's do not see each other's locks.
            $file = \preg_replace('~^sqlite:(//)?~', '', $dsn) . $suffix;
            \touch($file);

            return ['driver' => 'sqlite', 'database' => $file, 'foreign_key_constraints' => true];
        }
        $url = (array) \parse_url($dsn);
        \preg_match('/search_path%3D(\w+)/', $dsn, $schema);

        return [
            'driver' => $kind === 'postgres' ? 'pgsql' : 'mysql',
            'host' => $url['host'] ?? '',
            'port' => $url['port'] ?? 0,
            'username' => $url['user'] ?? '',
            'password' => $url['pass'] ?? '',
            'database' => \ltrim((string) ($url['path'] ?? ''), '/'),
            'charset' => $kind === 'postgres' ? 'utf8' : 'utf8mb4',
            // Of PostgreSQL, under both of its names.
            'schema' => $schema[1] ?? '',
            'search_path' => $schema[1] ?? '',
        ];
    }
}
