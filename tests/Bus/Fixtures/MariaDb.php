<?php

declare(strict_types=1);

namespace Weft\Tests\Bus\Fixtures;

use Weft\Sql\Database;

/** A database of MariaDB for one test, made when it is asked for. */
trait MariaDb
{
    private ?string $schemaName = null;

    /** @after */
    protected function dropMariaDb(): void
    {
        if ($this->schemaName !== null) {
            $admin = Database::connect((string) \getenv('WEFT_MYSQL_DSN'));
            $admin->execute("DROP DATABASE {$this->schemaName}");
            $admin->close();
        }
    }

    private function mariaDb(): Database
    {
        $dsn = \getenv('WEFT_MYSQL_DSN');
        self::assertNotFalse($dsn, 'WEFT_MYSQL_DSN is not set: run `make services`');
        if ($this->schemaName === null) {
            $this->schemaName = 'test_' . \bin2hex(\random_bytes(4));
            $admin = Database::connect($dsn);
            $admin->execute("CREATE DATABASE {$this->schemaName}");
            $admin->close();
        }
        $database = Database::connect(\preg_replace('~/[^/?]*(?=$|\?)~', "/{$this->schemaName}", $dsn));
        $database->execute('CREATE TABLE IF NOT EXISTS effects (id VARCHAR(64), listener VARCHAR(64))');

        return $database;
    }
}
