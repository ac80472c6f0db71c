<?php

declare(strict_types=1);

namespace Weft\Tests\Bus\Fixtures;

use PHPUnit\Framework\Attributes\After;
use PHPUnit\Framework\Attributes\Before;
use Weft\Sql\Database;
use Weft\Pool\PoolOptions;

/** A virtual host of RabbitMQ and a schema of PostgreSQL for one test. */
trait Servers
{
    use PostgresSchema;

    private VirtualHost $host;

    /** @before */
    #[Before]
    protected function makeRoom(): void
    {
        $this->host = VirtualHost::create(self::setting('RABBITMQ_MANAGEMENT_URL'));
    }

    /** @after */
    #[After]
    protected function leaveRoom(): void
    {
        $this->host->delete();
    }

    private function brokerDsn(): string
    {
        return $this->host->in(self::setting('AMQP_URL'));
    }

    protected function database(int $size = 10): Database
    {
        $database = Database::connect($this->databaseDsn(), new PoolOptions(size: $size));
        // Without a key: one would hide an effect that happens twice.
        $database->execute('CREATE TABLE IF NOT EXISTS effects (id VARCHAR(64), listener VARCHAR(64))');

        return $database;
    }
}
