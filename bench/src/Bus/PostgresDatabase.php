<?php

declare(strict_types=1);

namespace Weft\Bench\Bus;

/** A database of the benchmark's own beside the one in the URL. It is made anew: what contenders of another version have left there does not stay. */
final class PostgresDatabase
{
    private const NAME = 'weft_bench';
    private const TABLE = 'CREATE TABLE customers (id uuid PRIMARY KEY, name varchar NOT NULL, email varchar NOT NULL)';

    /** @param string $url of any database, with a user that may create databases */
    public function __construct(private readonly string $url)
    {
        $this->createDatabase();
        $this->connection()->exec(self::TABLE);
    }

    /** Without TLS for everyone: libpq and pgx would otherwise use it with a server that offers it, and others not. */
    public function url(): string
    {
        return preg_replace('#^(\w+://[^/?]+).*#', '$1/' . self::NAME . '?sslmode=disable', $this->url);
    }

    public function version(): string
    {
        return strtok($this->connection()->query('SHOW server_version')->fetchColumn(), ' ');
    }

    /** Every run starts with an empty table and right after a checkpoint, so none pays for the pages of the one before. */
    public function reset(): void
    {
        $connection = $this->connection();
        $connection->exec('TRUNCATE customers');
        // The runs have different brokers, which must not share a database at the same time.
        $connection->exec('DROP TABLE IF EXISTS weft_broker');
        $connection->exec('CHECKPOINT');
    }

    /** Leaves none of the tables a contender keeps its queue in. */
    public function dropQueues(): void
    {
        $this->connection()->exec('DROP TABLE IF EXISTS weft_messages, weft_consumers, weft_bindings, weft_queues');
    }

    /** @return array{int, int} rows, and different customers among them */
    public function count(): array
    {
        return $this->connection()->query('SELECT COUNT(*), COUNT(DISTINCT name) FROM customers')->fetch(\PDO::FETCH_NUM);
    }

    /** A new one each time: a contender's run may have cost the one before. */
    private function connection(): \PDO
    {
        return self::connect($this->url());
    }

    private function createDatabase(): void
    {
        $server = self::connect($this->url);
        $server->exec('DROP DATABASE IF EXISTS ' . self::NAME . ' WITH (FORCE)');
        $server->exec('CREATE DATABASE ' . self::NAME);
    }

    private static function connect(string $url): \PDO
    {
        $parts = parse_url($url);
        $dsn = sprintf('pgsql:host=%s;port=%d;dbname=%s', $parts['host'], $parts['port'] ?? 5432, ltrim($parts['path'], '/'));

        return new \PDO($dsn, rawurldecode($parts['user']), rawurldecode($parts['pass'] ?? ''));
    }
}
