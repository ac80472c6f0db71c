<?php

declare(strict_types=1);

namespace Weft\Tests\Bus\Fixtures;

use PHPUnit\Framework\Attributes\After;
use PHPUnit\Framework\Attributes\Before;
use Weft\Sql\Database;

/** A schema of PostgreSQL for one test, or a database of MariaDB. */
trait PostgresSchema
{
    private string $schema;

    /** @before */
    #[Before]
    protected function makeSchema(): void
    {
        $this->schema = 'test_' . \bin2hex(\random_bytes(4));
        $database = Database::connect(self::setting(static::SERVER));
        $database->execute("CREATE SCHEMA {$this->schema}");
        $database->close();
    }

    /** @after */
    #[After]
    protected function dropSchema(): void
    {
        $database = Database::connect(self::setting(static::SERVER));
        $database->execute("DROP SCHEMA {$this->schema}" . (static::SERVER === 'DATABASE_URL' ? ' CASCADE' : ''));
        $database->close();
    }

    private function databaseDsn(string $name = ''): string
    {
        $dsn = self::setting(static::SERVER);
        if (static::SERVER !== 'DATABASE_URL') {
            return \preg_replace('~/weft$~', "/{$this->schema}", $dsn) . ($name === '' ? '' : "?application_name={$name}");
        }

        return $dsn . (\str_contains($dsn, '?') ? '&' : '?') . 'options=' . \rawurlencode("-c search_path={$this->schema}")
            . ($name === '' ? '' : "&application_name={$name}");
    }

    protected static function setting(string $name): string
    {
        $value = \getenv($name);
        self::assertNotFalse($value, "{$name} is not set: run `make services`");

        return $value;
    }
}
