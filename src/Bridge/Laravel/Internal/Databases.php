<?php

declare(strict_types=1);

namespace Weft\Bridge\Laravel\Internal;

use Illuminate\Database\SQLiteDatabaseDoesNotExistException;
use Weft\Bridge\Internal\MysqlOptions;
use Weft\Bridge\Internal\Setting;
use Weft\Bridge\Internal\SharedDatabases;
use Weft\Bridge\Laravel\Database\DatabaseException;
use Weft\Pool\Hooks;
use Weft\Pool\PoolException;
use Weft\Pool\PoolOptions;
use Weft\Sql\Database;
use Weft\Sql\Driver;
use Weft\Sql\SqlException;
use Weft\UsageError;

/**
 * The databases of this process, by the configuration of Laravel's connections.
 *
 * @internal
 */
final class Databases
{
    private const STRICT = 'ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION';

    /**
     * @param array<string, mixed> $config of a connection
     * @param array<string, mixed> $pool options of its pool, where it has none of its own
     */
    public static function of(#[\SensitiveParameter] array $config, array $pool = []): Database
    {
        [$driver, $dsn, $settings] = match ($config['driver'] ?? null) {
            'pgsql' => [Driver::Postgres, self::postgres($config), []],
            'mysql', 'mariadb' => [Driver::Mysql, self::server('mysql', $config, self::tls($config)), self::mysqlSettings($config)],
            'sqlite' => [Driver::Sqlite, self::sqlite($config), []],
            'weft' => self::given($config),
            default => throw new UsageError(\sprintf('The driver of a connection is "%s": Weft knows pgsql, mysql, mariadb, sqlite and weft', (string) ($config['driver'] ?? ''))),
        };
        $pool = isset($config['pool'])
            ? Setting::pool(isset($config['name']) ? "\"pool\" of the connection \"{$config['name']}\"" : '"pool" of the connection', $config['pool'])
            : Setting::pool('"pool" of "database" in config/weft.php', $pool, ['size' => 'WEFT_POOL_SIZE']);
        $hooks = MysqlOptions::hooks($settings);
        try {
            if ($dsn === 'sqlite::memory:') {
                // Each connection is a database of its own, as with PDO.
                return self::open($config, $dsn, $pool, $hooks);
            }

            return SharedDatabases::of(\serialize([self::class, $dsn, $settings, $pool]), static fn(): Database => self::open($config, $dsn, $pool, $hooks));
        } catch (SqlException | PoolException $failure) {
            throw DatabaseException::of($failure, $driver);
        }
    }

    /**
     * Fails where the server cannot be reached, as PDO does when it connects: Laravel tries the other hosts of a connection then. A pool that has
     * connections costs no round trip.
     *
     * @throws DatabaseException
     */
    public static function check(Database $database): void
    {
        if ($database->driver() === Driver::Sqlite || $database->stats()['total'] !== 0) {
            return;
        }
        try {
            $database->execute('SELECT 1');
        } catch (SqlException | PoolException $failure) {
            throw DatabaseException::of($failure, $database->driver());
        }
    }

    /** @param array<string, mixed> $config */
    private static function open(#[\SensitiveParameter] array $config, #[\SensitiveParameter] string $dsn, PoolOptions $pool, Hooks $hooks): Database
    {
        $database = Database::connect($dsn, $pool, $hooks);
        $isChecked = match ($config['driver'] ?? null) {
            // As in PDO's own SQLite; Weft's checks them.
            'sqlite' => (bool) ($config['foreign_key_constraints'] ?? false),
            default => (bool) ($config['foreign_key_constraints'] ?? true),
        };
        if (!$isChecked && $database->driver() === Driver::Sqlite) {
            $database->execute('PRAGMA foreign_keys = OFF');
        }

        return $database;
    }

    /**
     * By the DSN of the configuration.
     *
     * @param array<string, mixed> $config
     *
     * @return array{Driver, string, list<string>} kind, DSN, statements for each connection
     */
    private static function given(#[\SensitiveParameter] array $config): array
    {
        $dsn = (string) ($config['dsn'] ?? throw new UsageError('A connection with the driver "weft" needs a "dsn", such as postgres://user:password@localhost/app'));
        isset($config['charset']) && self::utf8((string) $config['charset']);
        if (\str_starts_with($dsn, 'sqlite:')) {
            return [Driver::Sqlite, $dsn, []];
        }
        // The last one of an option counts.
        $query = \array_filter(['host' => $config['host'] ?? null, 'port' => $config['port'] ?? null], static fn(mixed $value): bool => $value !== null && $value !== '');
        if (\preg_match('/^(?:mysql|mariadb):/', $dsn) === 1) {
            self::refuseTls($config);

            return [Driver::Mysql, self::with($dsn, $query), self::mysqlSettings($config)];
        }
        $settings = self::postgresSettings($config);
        if ($settings !== null) {
            $query['options'] = (\preg_match('/[?&]options=([^&]*)/', $dsn, $given) === 1 ? \rawurldecode($given[1]) . ' ' : '') . $settings;
        }

        return [Driver::Postgres, self::with($dsn, $query), []];
    }

    /** @param array<string, mixed> $query */
    private static function with(#[\SensitiveParameter] string $dsn, array $query): string
    {
        return $query === [] ? $dsn : $dsn . (\str_contains($dsn, '?') ? '&' : '?') . \http_build_query($query, encoding_type: \PHP_QUERY_RFC3986);
    }

    /**
     * @param array<string, mixed> $config
     *
     * @throws UsageError
     */
    private static function refuseTls(#[\SensitiveParameter] array $config): void
    {
        $options = (array) ($config['options'] ?? []);
        foreach (['SSL_CA', 'SSL_VERIFY_SERVER_CERT', 'SERVER_PUBLIC_KEY'] as $name) {
            MysqlOptions::attribute($options, $name) === null
                || throw new UsageError("The connection has PDO's option MYSQL_ATTR_$name: with the driver \"weft\" its \"dsn\" says that");
        }
    }

    /** @param array<string, mixed> $config */
    private static function postgres(#[\SensitiveParameter] array $config): string
    {
        foreach (['sslcert', 'sslkey'] as $unknown) {
            isset($config[$unknown]) && throw new UsageError("The connection has \"$unknown\": client certificates are not supported");
        }

        return self::server('postgres', $config, \array_filter([
            'sslmode' => self::sslMode((string) ($config['sslmode'] ?? '')),
            'sslrootcert' => $config['sslrootcert'] ?? null,
            'application_name' => $config['application_name'] ?? null,
            'require_auth' => $config['require_auth'] ?? null,
            'channel_binding' => $config['channel_binding'] ?? null,
            'connect_timeout' => $config['connect_timeout'] ?? null,
            'options' => self::postgresSettings($config),
        ], static fn(mixed $value): bool => $value !== null && $value !== ''));
    }

    /**
     * Settings of Laravel's connector, as options of the start: a session has them again when the pool has cleaned it.
     *
     * @param array<string, mixed> $config
     */
    private static function postgresSettings(#[\SensitiveParameter] array $config): ?string
    {
        $path = $config['search_path'] ?? $config['schema'] ?? null;
        $settings = [
            'TimeZone' => $config['timezone'] ?? null,
            'search_path' => $path === null ? null : self::searchPath($path),
            'synchronous_commit' => $config['synchronous_commit'] ?? null,
            'default_transaction_isolation' => isset($config['isolation_level']) ? \strtolower((string) $config['isolation_level']) : null,
        ];
        $options = [];
        foreach ($settings as $name => $value) {
            // The server splits at white space that has no backslash before it.
            $value === null || $options[] = "-c $name=" . \addcslashes((string) $value, " \t\\");
        }

        return $options === [] ? null : \implode(' ', $options);
    }

    private static function searchPath(mixed $path): string
    {
        $names = \is_array($path) ? $path : (\preg_split('/[\s,]+/', (string) $path, -1, \PREG_SPLIT_NO_EMPTY) ?: []);

        return \implode(', ', \array_map(static fn(mixed $name): string => '"' . \str_replace('"', '""', \trim((string) $name, '\'"')) . '"', $names));
    }

    /** libpq's `allow` encrypts only where the server insists, as `prefer` does where it can. */
    private static function sslMode(string $mode): string
    {
        return $mode === 'allow' ? 'prefer' : $mode;
    }

    /**
     * TLS, and for servers that ask for the password without it the two options that the error message of the refused log-in names.
     *
     * @param array<string, mixed> $config
     *
     * @return array<string, mixed>
     */
    private static function tls(#[\SensitiveParameter] array $config): array
    {
        $unverified = $config['allow_unverified_server'] ?? null;
        $own = \array_filter([
            'server_public_key' => $config['server_public_key'] ?? null,
            'allow_unverified_server' => \is_bool($unverified) ? ($unverified ? 'on' : 'off') : $unverified,
        ], static fn(mixed $value): bool => $value !== null && $value !== '');

        return $own + self::pdoOptions($config)->dsn() + (isset($config['sslmode']) ? ['sslmode' => $config['sslmode']] : []);
    }

    /** @param array<string, mixed> $config */
    private static function pdoOptions(#[\SensitiveParameter] array $config): MysqlOptions
    {
        return MysqlOptions::ofPdo((array) ($config['options'] ?? []));
    }

    /**
     * The settings of Laravel's own connector, in its order.
     *
     * @param array<string, mixed> $config
     *
     * @return list<string>
     */
    private static function mysqlSettings(array $config): array
    {
        $command = self::pdoOptions($config)->initCommand;
        $settings = [];
        if (isset($config['isolation_level'])) {
            $settings[] = "SET SESSION TRANSACTION ISOLATION LEVEL {$config['isolation_level']}";
        }
        if (isset($config['charset'])) {
            self::utf8((string) $config['charset']);
            $settings[] = "SET NAMES '{$config['charset']}'" . (isset($config['collation']) ? " COLLATE '{$config['collation']}'" : '');
        }
        if (isset($config['timezone'])) {
            $settings[] = "SET time_zone = '{$config['timezone']}'";
        }
        if (isset($config['modes'])) {
            $settings[] = "SET SESSION sql_mode = '" . \implode(',', (array) $config['modes']) . "'";
        } elseif (isset($config['strict'])) {
            $settings[] = "SET SESSION sql_mode = '" . ((bool) $config['strict'] ? self::STRICT : 'NO_ENGINE_SUBSTITUTION') . "'";
        }

        return $command === null ? $settings : [...$settings, $command];
    }

    /** @param array<string, mixed> $config */
    private static function sqlite(array $config): string
    {
        $file = (string) ($config['database'] ?? '');
        if ($file === ':memory:' || \str_contains($file, 'mode=memory')) {
            return 'sqlite::memory:';
        }
        $path = \realpath($file);
        if ($path === false) {
            throw \class_exists(SQLiteDatabaseDoesNotExistException::class)
                ? new SQLiteDatabaseDoesNotExistException($file)
                : new \InvalidArgumentException("Database ($file) does not exist.");
        }
        $query = \array_filter([
            'synchronous' => isset($config['synchronous']) ? \strtolower((string) $config['synchronous']) : null,
            'busy_timeout' => isset($config['busy_timeout']) ? (int) $config['busy_timeout'] / 1_000 : null,
        ], static fn(mixed $value): bool => $value !== null);

        return 'sqlite://' . \implode('/', \array_map(\rawurlencode(...), \explode('/', $path))) . ($query === [] ? '' : '?' . \http_build_query($query));
    }

    /**
     * @param array<string, mixed> $config
     * @param array<string, mixed> $query
     */
    private static function server(string $scheme, #[\SensitiveParameter] array $config, array $query): string
    {
        isset($config['charset']) && self::utf8((string) $config['charset']);
        $host = (string) ($config['host'] ?? 'localhost');
        if (($config['unix_socket'] ?? '') !== '') {
            [$host, $query['host']] = ['localhost', $config['unix_socket']];
        } elseif (\str_starts_with($host, '/')) {
            [$host, $query['host']] = ['localhost', $host];
        } elseif (\str_contains($host, ':') && !\str_starts_with($host, '[')) {
            $host = "[$host]";
        }
        $user = \rawurlencode((string) ($config['username'] ?? ''));
        $password = ($config['password'] ?? '') === '' ? '' : ':' . \rawurlencode((string) $config['password']);
        $port = ($config['port'] ?? '') === '' ? '' : ":{$config['port']}";
        $name = \rawurlencode((string) ($config['database'] ?? ''));

        return "$scheme://" . ($user === '' ? '' : "$user$password@") . "$host$port/$name" . ($query === [] ? '' : '?' . \http_build_query($query, encoding_type: \PHP_QUERY_RFC3986));
    }

    private static function utf8(string $charset): void
    {
        if (\preg_match('/^(?:utf-?8|utf8mb[34]|unicode)$/i', $charset) !== 1) {
            throw new UsageError("The connection has the charset \"$charset\": Weft's connections are UTF-8, leave it out or say utf8");
        }
    }
}
