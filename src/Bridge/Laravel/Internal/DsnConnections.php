<?php

declare(strict_types=1);

namespace Weft\Bridge\Laravel\Internal;

use Illuminate\Contracts\Container\Container;
use Illuminate\Database\Connection;
use Illuminate\Database\Connectors\ConnectionFactory;
use Illuminate\Database\Connectors\ConnectorInterface;
use Weft\Bridge\Internal\Setting;
use Weft\Bridge\Laravel\Database\Connector;
use Weft\Bridge\Laravel\Database\SQLiteConnection;
use Weft\UsageError;

/**
 * Makes connections with the driver `weft`, whose `dsn` is one of {@see \Weft\Sql\Database::connect()}. `read`, `write`, `sticky` and lists of
 * hosts are those of Laravel's own factory.
 *
 * @internal
 */
final class DsnConnections extends ConnectionFactory
{
    /** Configurations that Laravel merges into the one of the connection. */
    private const SIDES = ['read', 'write', 'direct'];

    private const DRIVERS = [
        'postgres' => 'pgsql', 'postgresql' => 'pgsql', 'pgsql' => 'pgsql',
        'mysql' => 'mysql', 'mariadb' => 'mysql',
        'sqlite' => 'sqlite',
    ];

    /** Options of Laravel's drivers that a DSN has under the same or another name. */
    private const IN_DSN = [
        'url', 'database', 'username', 'password', 'unix_socket', 'sslmode', 'sslrootcert', 'application_name', 'connect_timeout', 'require_auth', 'channel_binding',
        'server_public_key', 'allow_unverified_server', 'statement_cache', 'synchronous', 'busy_timeout',
    ];

    /** Settings of a session that the other kinds of databases do not have. */
    private const FOREIGN = [
        'pgsql' => ['collation', 'modes', 'foreign_key_constraints', 'journal_mode'],
        'mysql' => ['schema', 'search_path', 'synchronous_commit', 'foreign_key_constraints', 'journal_mode'],
        // Its journal is always a write-ahead log.
        'sqlite' => ['host', 'port', 'schema', 'search_path', 'synchronous_commit', 'timezone', 'isolation_level', 'collation', 'modes', 'journal_mode'],
    ];

    public function __construct(Container $container, private readonly Connector $connector)
    {
        parent::__construct($container);
    }

    /**
     * @param array<string, mixed> $config
     * @param string $name
     */
    public function make(#[\SensitiveParameter] array $config, $name = null): Connection
    {
        $sides = [...self::sides($config, 'write'), $config, ...self::sides($config, 'read'), ...self::sides($config, 'direct')];
        $dsns = \array_values(\array_filter(\array_map(static fn(array $side): string => (string) ($side['dsn'] ?? ''), $sides)));
        $drivers = \array_unique(\array_map(static fn(string $dsn): ?string => self::DRIVERS[(string) \strstr($dsn, ':', true)] ?? null, $dsns));
        if ($drivers === [] || \in_array(null, $drivers, true)) {
            throw new UsageError("The connection \"$name\" has the driver \"weft\" and needs a \"dsn\" that begins with postgres:, mysql:, mariadb: or sqlite:");
        }
        if (\count($drivers) > 1) {
            throw new UsageError("The connection \"$name\" has DSNs of several kinds of databases: they must be of one");
        }
        foreach ($sides as $side) {
            self::refuse($side, $drivers[0], (string) $name);
        }
        // Laravel asks for the side that it writes to.
        isset($config['read']) && $config['write'] ??= [];
        $database = \rawurldecode($drivers[0] === 'sqlite' ? (string) \preg_replace('~^sqlite:(//)?|\?.*$~s', '', $dsns[0]) : \ltrim((string) \parse_url($dsns[0], \PHP_URL_PATH), '/'));

        // The grammars and other packages ask for the kind of database by the driver.
        return parent::make(['driver' => $drivers[0], 'database' => $database] + $config, $name);
    }

    /** @param array<string, mixed> $config */
    public function createConnector(#[\SensitiveParameter] array $config): ConnectorInterface
    {
        return new class ($this->connector) implements ConnectorInterface {
            public function __construct(private readonly Connector $connector)
            {
            }

            /** @param array<string, mixed> $config */
            public function connect(#[\SensitiveParameter] array $config): \PDO
            {
                return $this->connector->connect(['driver' => 'weft'] + $config);
            }
        };
    }

    /**
     * @param string $driver
     * @param \PDO|\Closure $connection
     * @param string $database
     * @param string $prefix
     * @param array<string, mixed> $config
     */
    protected function createConnection($driver, $connection, $database, $prefix = '', #[\SensitiveParameter] array $config = []): Connection
    {
        return $driver === 'sqlite' && Connection::getResolver($driver) === null
            ? new SQLiteConnection($connection, $database, $prefix, $config)
            : parent::createConnection($driver, $connection, $database, $prefix, $config);
    }

    /**
     * @param array<string, mixed> $config
     *
     * @return list<array<string, mixed>> Laravel takes one of them
     */
    private static function sides(#[\SensitiveParameter] array $config, string $side): array
    {
        /** @var list<array<string, mixed>>|array<string, mixed> $given */
        $given = (array) ($config[$side] ?? []);

        /** @var list<array<string, mixed>> */
        return \array_is_list($given) ? $given : [$given];
    }

    /**
     * @param array<string, mixed> $config
     *
     * @throws UsageError an option that would have no effect
     */
    private static function refuse(#[\SensitiveParameter] array $config, string $driver, string $name): void
    {
        foreach ($config as $option => $value) {
            if (Setting::given($value) === null || \in_array($option, self::SIDES, true)) {
                continue;
            }
            if (\in_array($option, self::IN_DSN, true)) {
                throw new UsageError("The connection \"$name\" with the driver \"weft\" has \"$option\": its \"dsn\" says that");
            }
            if (\in_array($option, self::FOREIGN[$driver], true)) {
                throw new UsageError("The connection \"$name\" with the driver \"weft\" has \"$option\", which Weft's connections to this kind of database ($driver) do not have: leave it out");
            }
        }
    }
}
