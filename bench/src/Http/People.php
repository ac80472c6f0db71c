<?php

declare(strict_types=1);

namespace Weft\Bench\Http;

/** The database that the contenders query: 10,000 people and 10,000 counters, found by primary key, and twelve fortunes. */
final class People
{
    private const NAME = 'weft_bench_http';
    public const ROWS = 10_000;
    /** With everything that HTML escapes, and letters of more than one byte. */
    public const FORTUNES = [
        'A query that is fast alone may be slow in company.',
        'Every cache was once a shortcut.',
        '<script>alert("Templates escape what they print.");</script>',
        'Measure twice, publish once.',
        'The network is reliable & the clock is right, until Friday.',
        "It's always the connection pool.",
        'Die Warteschlange ist länger, als sie aussieht.',
        'Времени всегда меньше, чем задач.',
        '待ち行列は短いほどよい。',
        'A timeout is a decision that nobody wanted to make.',
        'Retries are loops with hope.',
        'Whoever reads the log first writes the report.',
    ];
    /** The fortune that each request adds to those of the database. */
    public const ADDED = 'Additional fortune added at request time.';

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
        $database->exec('CREATE TABLE IF NOT EXISTS counters (id int PRIMARY KEY, value int NOT NULL)');
        $database->exec(sprintf('INSERT INTO counters SELECT i, i FROM generate_series(1, %d) AS i ON CONFLICT DO NOTHING', self::ROWS));
        $database->exec('CREATE TABLE IF NOT EXISTS fortunes (id int PRIMARY KEY, message text NOT NULL)');
        $insert = $database->prepare('INSERT INTO fortunes VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET message = excluded.message');
        foreach (self::FORTUNES as $index => $message) {
            $insert->execute([$index + 1, $message]);
        }
        $database->exec('VACUUM ANALYZE people, counters, fortunes');
    }

    /** @param string $url of a PostgreSQL database */
    public static function connect(string $url): \PDO
    {
        $parts = parse_url($url);
        $dsn = sprintf('pgsql:host=%s;port=%d;dbname=%s', $parts['host'], $parts['port'] ?? 5432, ltrim($parts['path'], '/'));

        return new \PDO($dsn, rawurldecode($parts['user']), rawurldecode($parts['pass'] ?? ''));
    }
}
