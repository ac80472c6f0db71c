<?php

declare(strict_types=1);

namespace Weft\Tests\Sql\Support;

use Weft\Sql\Database;

/** An empty database: a file of SQLite, a schema of PostgreSQL or a database of MariaDB or MySQL. */
final class EmptyDatabase
{
    private const VARIABLES = ['postgres' => 'DATABASE_URL', 'mariadb' => 'WEFT_MYSQL_DSN'];

    private readonly string $name;

    /** @param string $kind sqlite, postgres or mariadb */
    public function __construct(private readonly string $kind)
    {
        $this->name = 'weft_test_' . \bin2hex(\random_bytes(6));
        if ($kind !== 'sqlite') {
            $this->administer($kind === 'postgres' ? "CREATE SCHEMA {$this->name}" : "CREATE DATABASE {$this->name}");
        }
    }

    public function dsn(): string
    {
        return match ($this->kind) {
            'sqlite' => "sqlite://{$this->file()}",
            'postgres' => $this->server() . (\str_contains($this->server(), '?') ? '&' : '?') . "options=-csearch_path%3D{$this->name}&connect_timeout=60",
            'mariadb' => (string) \preg_replace('~/[^/?]*(?=$|\?)~', "/{$this->name}", $this->server()),
        };
    }

    public function drop(): void
    {
        if ($this->kind !== 'sqlite') {
            $this->administer($this->kind === 'postgres' ? "DROP SCHEMA {$this->name} CASCADE" : "DROP DATABASE {$this->name}");

            return;
        }
        foreach (\glob("{$this->file()}*") ?: [] as $path) {
            // One that is being closed removes some itself.
            \is_dir($path) ? self::removeDirectory($path) : @\unlink($path);
        }
    }

    private function file(): string
    {
        return \sys_get_temp_dir() . "/{$this->name}.db";
    }

    private static function removeDirectory(string $directory): void
    {
        \array_map(static fn(string $file): bool => @\unlink($file), \glob("{$directory}/*") ?: []);
        \rmdir($directory);
    }

    private function server(): string
    {
        $variable = self::VARIABLES[$this->kind];

        return \getenv($variable) ?: throw new \RuntimeException("{$variable} is not set: run `make services`");
    }

    private function administer(string $statement): void
    {
        $admin = Database::connect($this->server());
        $admin->execute($statement);
        $admin->close();
    }
}
