<?php

declare(strict_types=1);

namespace Weft\Bridge\Doctrine\Internal;

use Weft\Bridge\Internal\MysqlOptions;
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
    /** Parameters that go into the DSN as they are. */
    private const COMMON = ['sslmode', 'sslrootcert', 'application_name', 'connect_timeout', 'statement_cache'];

    private const OF_MYSQL = [...self::COMMON, 'server_public_key', 'allow_unverified_server'];

    /** @param array<string, mixed> $params of {@see \Weft\Bridge\Doctrine\Driver} */
    public static function of(#[\SensitiveParameter] array $params): Database
    {
        /** @var array<string, mixed> $options */
        $options = $params['driverOptions'] ?? [];
        $database = $options['database'] ?? null;
        if ($database instanceof Database) {
            return $database;
        }
        $mysql = match ($params['driver'] ?? null) {
            'pdo_mysql' => MysqlOptions::ofPdo($options),
            'mysqli' => MysqlOptions::ofMysqli($params, $options),
            default => null,
        };
        $dsn = self::dsn($params, $mysql?->dsn() ?? []);
        $command = $mysql?->initCommand;
        $settings = $command === null ? [] : [$command];
        $pool = Setting::pool('"pool" in the driverOptions of the connection', $options['pool'] ?? []);
        if ($dsn === 'sqlite::memory:') {
            // Each connection is a database of its own, as with PDO.
            return self::open($dsn, $pool, $settings);
        }

        return SharedDatabases::keep(\serialize([self::class, $dsn, $settings, $pool]), static fn(): Database => self::open($dsn, $pool, $settings));
    }

    /** @param list<string> $settings statements for each connection */
    private static function open(#[\SensitiveParameter] string $dsn, PoolOptions $pool, array $settings): Database
    {
        $database = Database::connect($dsn, $pool, MysqlOptions::hooks($settings));
        if ($database->driver() === Driver::Sqlite) {
            // As in PDO's own SQLite; Weft's checks them. DBAL changes a table by dropping it, which deletes the rows that refer to it.
            $database->execute('PRAGMA foreign_keys = OFF');
        }

        return $database;
    }

    /**
     * @param array<string, mixed> $params
     * @param array<string, string> $mysql options of the DSN
     */
    private static function dsn(#[\SensitiveParameter] array $params, array $mysql): string
    {
        return match ($params['driver'] ?? null) {
            'pdo_pgsql', 'pgsql' => self::postgres($params),
            'pdo_mysql', 'mysqli' => self::server('mysql', $params, $mysql + self::given($params, self::OF_MYSQL)),
            'pdo_sqlite', 'sqlite3' => isset($params['path']) ? self::file((string) $params['path']) : 'sqlite::memory:',
            default => throw new UsageError(\sprintf(
                'The parameters of the connection name no database that Weft knows: "driver" is %s, it must be pdo_pgsql, pgsql, pdo_mysql, mysqli, pdo_sqlite or sqlite3',
                isset($params['driver']) ? "\"{$params['driver']}\"" : 'missing',
            )),
        };
    }

    /** @param array<string, mixed> $params */
    private static function postgres(#[\SensitiveParameter] array $params): string
    {
        foreach (['sslcert', 'sslkey', 'sslcrl'] as $unsupported) {
            isset($params[$unsupported]) && throw new UsageError(
                "The connection has the parameter \"$unsupported\", which Weft does not support: it has no client certificates and no lists of revoked ones",
            );
        }

        return self::server('postgres', $params, self::given($params, self::COMMON));
    }

    /**
     * @param array<string, mixed> $params
     * @param list<string> $names
     *
     * @return array<string, mixed>
     */
    private static function given(#[\SensitiveParameter] array $params, array $names): array
    {
        $given = \array_intersect_key($params, \array_flip($names));

        return \array_map(static fn(mixed $value): mixed => \is_bool($value) ? ($value ? 'on' : 'off') : $value, $given);
    }

    /** In a DSN `%` begins a code, and `?` the options. */
    private static function file(string $path): string
    {
        return $path === ':memory:' ? 'sqlite::memory:' : 'sqlite:' . \strtr($path, ['%' => '%25', '?' => '%3F']);
    }

    /**
     * @param array<string, mixed> $params
     * @param array<string, mixed> $query options of the DSN
     */
    private static function server(string $scheme, #[\SensitiveParameter] array $params, array $query): string
    {
        $charset = (string) ($params['charset'] ?? 'utf8');
        if (\preg_match('/^(?:utf-?8|utf8mb[34]|unicode)$/i', $charset) !== 1) {
            throw new UsageError("The parameter \"charset\" is \"$charset\": Weft's connections are UTF-8, leave it out or say utf8");
        }
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
