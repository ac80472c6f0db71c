<?php

declare(strict_types=1);

namespace Weft\Bridge\Laravel\Internal;

use Illuminate\Database\Connection;
use Illuminate\Database\MySqlConnection;
use Illuminate\Database\PostgresConnection;
use Weft\Bridge\Laravel\Database\Connector;
use Weft\Bridge\Laravel\Database\Pdo;
use Weft\Bridge\Laravel\Database\SQLiteConnection;
use Weft\UsageError;

/**
 * Connections with the driver `weft`, whose `dsn` is one of {@see \Weft\Sql\Database::connect()}.
 *
 * @internal
 */
final class Connections
{
    /** @param array<string, mixed> $config */
    public static function make(#[\SensitiveParameter] array $config, string $name): Connection
    {
        $dsn = (string) ($config['dsn'] ?? '');
        [$class, $driver] = match ((string) \strstr($dsn, ':', true)) {
            'postgres', 'postgresql', 'pgsql' => [PostgresConnection::class, 'pgsql'],
            'mysql', 'mariadb' => [MySqlConnection::class, 'mysql'],
            'sqlite' => [SQLiteConnection::class, 'sqlite'],
            default => throw new UsageError("The connection \"$name\" has the driver \"weft\" and needs a \"dsn\" that begins with postgres:, mysql:, mariadb: or sqlite:"),
        };
        $database = \rawurldecode($driver === 'sqlite' ? (string) \preg_replace('~^sqlite:(//)?|\?.*$~s', '', $dsn) : \ltrim((string) \parse_url($dsn, \PHP_URL_PATH), '/'));
        $pdo = static fn(): Pdo => (new Connector())->connect($config);

        // The grammars and other packages ask for the kind of database by the driver.
        return new $class($pdo, $database, (string) ($config['prefix'] ?? ''), ['driver' => $driver, 'name' => $name, 'database' => $database] + $config);
    }
}
