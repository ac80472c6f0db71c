<?php

declare(strict_types=1);

namespace Weft\Tests\Bus\Fixtures;

use Weft\Sql\Database;
use Weft\Pool\PoolOptions;

/** A virtual host of RabbitMQ and a schema of PostgreSQL for one test. */
trait Servers
{
    private VirtualHost $host;
    private string $schema;

    /** @before */
    protected function makeRoom(): void
    {
        $this->host = VirtualHost::create(self::setting('RABBITMQ_MANAGEMENT_URL'));
        $this->schema = 'test_' . \bin2hex(\random_bytes(4));
        $database = Database::connect(self::setting('DATABASE_URL'));
        $database->execute("CREATE SCHEMA {$this->schema}");
        $database->close();
    }

    /** @after */
    protected function leaveRoom(): void
    {
        $database = Database::connect(self::setting('DATABASE_URL'));
        $database->execute("DROP SCHEMA {$this->schema} CASCADE");
        $database->close();
        $this->host->delete();
    }

    private function brokerDsn(): string
    {
        return $this->host->in(self::setting('AMQP_URL'));
    }

    private function databaseDsn(): string
    {
        $dsn = self::setting('DATABASE_URL');

        return $dsn . (\str_contains($dsn, '?') ? '&' : '?') . 'options=' . \rawurlencode("-c search_path={$this->schema}");
    }

    private function database(int $size = 10): Database
    {
        $database = Database::connect($this->databaseDsn(), new PoolOptions(size: $size));
        // Without a key: one would hide an effect that happens twice.
        $database->execute('CREATE TABLE IF NOT EXISTS effects (id VARCHAR(64), listener VARCHAR(64))');

        return $database;
    }

    protected static function setting(string $name): string
    {
        $value = \getenv($name);
        self::assertNotFalse($value, "{$name} is not set: run `make services`");

        return $value;
    }
}
