<?php

declare(strict_types=1);

namespace Weft\Tests\Sql\Support;

use Weft\Sql\Database;
use Weft\Pool\PoolOptions;

/** An empty database for one test, of each kind there is. */
trait Databases
{
    /** @var array<string, string> DSN by kind */
    private array $made = [];

    /** @var list<Database> */
    private array $opened = [];

    /** @return iterable<string, array{string}> */
    public static function databases(): iterable
    {
        yield 'SQLite' => ['sqlite'];
        yield 'PostgreSQL' => ['postgres'];
        yield 'MariaDB' => ['mariadb'];
    }

    /** @after */
    protected function dropDatabases(): void
    {
        foreach ($this->opened as $database) {
            $database->close();
        }
        $this->opened = [];
        foreach ($this->made as $kind => $dsn) {
            $this->drop($kind, $dsn);
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
        return $this->made[$kind] ??= $this->make($kind, 'weft_test_' . \bin2hex(\random_bytes(6)));
    }

    private function make(string $kind, string $name): string
    {
        if ($kind === 'sqlite') {
            return 'sqlite://' . \sys_get_temp_dir() . "/{$name}.db";
        }
        $server = self::server($kind);
        self::administer($server, ($kind === 'postgres' ? 'CREATE SCHEMA ' : 'CREATE DATABASE ') . $name);

        return $kind === 'postgres'
            ? $server . (\str_contains($server, '?') ? '&' : '?') . "options=-csearch_path%3D{$name}"
            : (string) \preg_replace('~/weft$~', "/{$name}", $server);
    }

    private function drop(string $kind, string $dsn): void
    {
        \preg_match('/weft_test_[0-9a-f]+/', $dsn, $name);
        if ($kind === 'sqlite') {
            foreach (\glob(\sys_get_temp_dir() . "/{$name[0]}.db*") ?: [] as $file) {
                \is_dir($file) ? self::removeFolder($file) : \unlink($file);
            }
        } else {
            self::administer(self::server($kind), $kind === 'postgres' ? "DROP SCHEMA {$name[0]} CASCADE" : "DROP DATABASE {$name[0]}");
        }
    }

    private static function removeFolder(string $folder): void
    {
        \array_map('unlink', \glob("{$folder}/*") ?: []);
        \rmdir($folder);
    }

    private static function server(string $kind): string
    {
        $variable = $kind === 'postgres' ? 'DATABASE_URL' : 'WEFT_MYSQL_DSN';
        $server = \getenv($variable);
        self::assertNotFalse($server, "{$variable} is not set: run `make services`");

        return $server;
    }

    private static function administer(string $server, string $statement): void
    {
        $admin = Database::connect($server);
        $admin->execute($statement);
        $admin->close();
    }
}
