<?php

declare(strict_types=1);

namespace Weft\Bench\Chaos\Work;

use Weft\Bus\Transport;
use Weft\Bus\Transport\Postgres;
use Weft\Bus\Transport\RabbitMq;
use Weft\Bus\Transport\RabbitMqQueue;
use Weft\Bus\Transport\Sqlite;
use Weft\Sql\Database;

/** The transport that `--transport` names. */
final class Brokers
{
    public static function connect(string $transport, string $dsn, ?Database $database = null): Transport
    {
        return match ($transport) {
            'rabbitmq' => RabbitMq::connect($dsn),
            'quorum' => RabbitMq::connect($dsn, queue: RabbitMqQueue::quorum()),
            'cluster' => RabbitMq::connect($dsn, queue: RabbitMqQueue::quorum(replicas: 3)),
            'postgres' => Postgres::connect($dsn),
            'sqlite' => Sqlite::connect($dsn, $database),
        };
    }
}
