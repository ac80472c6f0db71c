<?php

declare(strict_types=1);

namespace Weft\Bridge\Doctrine\Internal;

use Weft\Bridge\Internal\Setting;
use Weft\Bridge\Internal\SharedDatabases;
use Weft\Pool\PoolOptions;
use Weft\Sql\Database;
use Weft\Sql\Driver;
use Weft\UsageError;

/**
 * The databases of this process by the parameters of DBAL: connections with the same parameters share a pool.
 *
 * @internal
 */
final class Databases
{
    /** @param array<string, mixed> $params of {@see \Weft\Bridge\Doctrine\Driver} */
    public static function of(#[\SensitiveParameter] array $params): Database
    {
        /** @var array<string, mixed> $options */
        $options = $params['driverOptions'] ?? [];
        $database = $options['database'] ?? null;
        if ($database instanceof Database) {
            return $database;
        }
        $dsn = self::dsn($params);
        $pool = Setting::pool('"pool" in the driverOptions of the connection', $options['pool'] ?? []);
        if ($dsn === 'sqlite::memory:') {
            // Each connection is a database of its own, as with PDO.
            return self::open($dsn, $pool);
        }

        return SharedDatabases::keep(\serialize([self::class, $dsn, $pool]), static fn(): Database => self::open($dsn, $pool));
    }

    private static function open(#[\SensitiveParameter] string $dsn, PoolOptions $pool): Database
    {
        $database = Database::connect($dsn, $pool);
        if ($database->driver() === Driver::Sqlite) {
            // As in PDO's own SQLite; Weft's checks them. DBAL changes a table by dropping it, which deletes the rows that refer to it.
            $database->execute('PRAGMA foreign_keys = OFF');
        }

        return $database;
    }

    /** @param array<string, mixed> $params */
    private static function dsn(#[\SensitiveParameter] array $params): string
    {
        return match ($params['driver'] ?? null) {
            'pdo_pgsql', 'pgsql' => self::server('postgres', $params, ['sslmode', 'sslrootcert', 'application_name', 'connect_timeout', 'statement_cache']),
            'pdo_mysql', 'mysqli' => self::server('mysql', $params, ['sslmode', 'sslrootcert', 'application_name', 'connect_timeout', 'statement_cache']),
            'pdo_sqlite', 'sqlite3' => isset($params['path']) ? self::file((string) $params['path']) : 'sqlite::memory:',
            default => throw new UsageError(\sprintf(
                'The parameters of the connection name no database that Weft knows: "driver" is %s, it must be pdo_pgsql, pgsql, pdo_mysql, mysqli, pdo_sqlite or sqlite3',
                isset($params['driver']) ? "\"{$params['driver']}\"" : 'missing',
            )),
        };
    }

    /** In a DSN `%` begins a code, and `?` the options. */
    private static function file(string $path): string
    {
        return $path === ':memory:' ? 'sqlite::memory:' : 'sqlite:' . \strtr($path, ['%' => '%25', '?' => '%3F']);
    }

    /**
     * @param array<string, mixed> $params
     * @param list<string> $options that go into the DSN as they are
     */
    private static function server(string $scheme, #[\SensitiveParameter] array $params, array $options): string
    {
        $charset = (string) ($params['charset'] ?? 'utf8');
        if (\preg_match('/^(?:utf-?8|utf8mb[34]|unicode)$/i', $charset) !== 1) {
            throw new UsageError("The parameter \"charset\" is \"$charset\": Weft's connections are UTF-8, leave it out or say utf8");
        }
        $query = \array_intersect_key($params, \array_flip($options));
        $host = (string) ($params['host'] ?? 'localhost');
        if (isset($params['unix_socket'])) {
            [$host, $query['host']] = ['localhost', $params['unix_socket']];
        } elseif (\str_starts_with($host, '/')) {
            [$host, $query['host']] = ['localhost', $host];
        } elseif (\str_contains($host, ':') && !\str_starts_with($host, '[')) {
            $host = "[$host]";
        }
        $user = \rawurlencode((string) ($params['user'] ?? ''));
        $password = isset($params['password']) && $params['password'] !== '' ? ':' . \rawurlencode((string) $params['password']) : '';
        $port = isset($params['port']) ? ":{$params['port']}" : '';
        $name = \rawurlencode((string) ($params['dbname'] ?? ($scheme === 'postgres' ? $params['default_dbname'] ?? 'postgres' : '')));

        return "$scheme://" . ($user === '' ? '' : "$user$password@") . "$host$port/$name" . ($query === [] ? '' : '?' . \http_build_query($query, encoding_type: \PHP_QUERY_RFC3986));
    }
}
