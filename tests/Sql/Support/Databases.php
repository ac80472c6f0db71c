<?php

declare(strict_types=1);

namespace Weft\Tests\Sql\Support;

use PHPUnit\Framework\Attributes\After;
use Weft\Sql\Database;
use Weft\Pool\PoolOptions;

/** An empty database for one test, of each kind there is. */
trait Databases
{
    /** @var array<string, EmptyDatabase> by kind */
    private array $made = [];

    /** @var list<Database> */
    private array $opened = [];

    /** @return iterable<string, array{string}> */
    public static function databases(): iterable
    {
        yield 'SQLite' => ['sqlite'];
        yield 'PostgreSQL' => ['postgres'];
        yield 'MariaDB or MySQL' => ['mariadb'];
    }

    /** @after */
    #[After]
    protected function dropDatabases(): void
    {
        foreach ($this->opened as $database) {
            $database->close();
        }
        $this->opened = [];
        foreach ($this->made as $database) {
            $database->drop();
        }
        $this->made = [];
    }

    /** The test's database of a kind, the same at each call. */
    protected function database(string $kind, int $size = 10): Database
    {
        return $this->opened[] = Database::connect($this->databaseDsn($kind), new PoolOptions(size: $size));
    }

    protected function databaseDsn(string $kind): string
    {
        return ($this->made[$kind] ??= new EmptyDatabase($kind))->dsn();
    }
}
