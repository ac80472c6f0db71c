<?php

declare(strict_types=1);

namespace Weft\Tests\Sql;

use PHPUnit\Framework\TestCase;
use Weft\Pool\PoolOptions;
use Weft\Sql\Database;
use Weft\Tests\Sql\Support\Witness;

/** What every database promises behind {@see Database}, as tests. */
abstract class SqlConformance extends TestCase
{
    use BatchConformance;
    use DeferredConformance;
    use ErrorConformance;
    use StreamConformance;
    use TaskConformance;
    use TransactionConformance;
    use ValueConformance;
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

    /** Whether a statement that changes rows can return them. */
    protected function hasReturning(): bool
    {
        return true;
    }

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
}
