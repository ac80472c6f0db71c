<?php

declare(strict_types=1);

namespace Weft\Bench\Http;

/** The database that the contenders query: 10,000 rows, found by primary key. */
final class People
{
    private const NAME = 'weft_bench_http';
    public const ROWS = 10_000;

    /** @param string $url of any database, with a user that may create databases */
    public function __construct(private readonly string $url)
    {
        $server = self::connect($url);
        if ($server->query("SELECT 1 FROM pg_database WHERE datname = '" . self::NAME . "'")->fetchColumn() === false) {
            $server->exec('CREATE DATABASE ' . self::NAME);
        }
        $this->fill(self::connect($this->url()));
    }

    /** Without TLS for everyone: libpq and pgx would use it with a server that offers it, others not. */
    public function url(): string
    {
        return preg_replace('#^(\w+://[^/?]+).*#', '$1/' . self::NAME . '?sslmode=disable', $this->url);
    }

    public function version(): string
    {
        return strtok(self::connect($this->url)->query('SHOW server_version')->fetchColumn(), ' ');
    }

    private function fill(\PDO $database): void
    {
        $database->exec('CREATE TABLE IF NOT EXISTS people (id int PRIMARY KEY, name text NOT NULL, email text NOT NULL)');
        $database->exec(sprintf(
            "INSERT INTO people SELECT i, 'name_' || i, 'name@qwerty.root' FROM generate_series(1, %d) AS i ON CONFLICT DO NOTHING",
            self::ROWS,
        ));
        $database->exec('VACUUM ANALYZE people');
    }

    /** @param string $url of a PostgreSQL database */
    public static function connect(string $url): \PDO
    {
        $parts = parse_url($url);
        $dsn = sprintf('pgsql:host=%s;port=%d;dbname=%s', $parts['host'], $parts['port'] ?? 5432, ltrim($parts['path'], '/'));

        return new \PDO($dsn, rawurldecode($parts['user']), rawurldecode($parts['pass'] ?? ''));
    }
}
