<?php

declare(strict_types=1);

namespace Weft\Bus\Internal;

use Weft\Bus\Transport;
use Weft\Bus\Transport\Memory;
use Weft\Bus\Transport\Postgres;
use Weft\Bus\Transport\RabbitMq;
use Weft\Bus\Transport\Sqlite;
use Weft\InvalidDsnError;
use Weft\Sql\Database;

/**
 * Creates the transport that a DSN names.
 *
 * @internal
 */
final class Dsn
{
    /** @throws InvalidDsnError */
    public static function connect(string $dsn, ?Database $database): Transport
    {
        $scheme = \strstr($dsn, ':', true);

        return match ($scheme) {
            'amqp', 'amqps' => RabbitMq::connect($dsn),
            'postgres', 'postgresql', 'pgsql' => Postgres::connect($dsn, $database?->createsTables() ?? true),
            'sqlite' => Sqlite::connect($dsn, $database, $database?->createsTables() ?? true),
            'memory' => new Memory(),
            // Only the scheme is shown: the rest may contain a password.
            false => throw new InvalidDsnError('The DSN of a bus must start with amqp:, amqps:, postgres:, sqlite: or memory:, got one without a scheme'),
            default => throw new InvalidDsnError('The DSN of a bus must start with amqp:, amqps:, postgres:, sqlite: or memory:, got ' . $scheme . ':'),
        };
    }
}
