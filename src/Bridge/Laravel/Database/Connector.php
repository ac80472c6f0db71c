<?php

declare(strict_types=1);

namespace Weft\Bridge\Laravel\Database;

use Illuminate\Database\Connectors\ConnectorInterface;
use Weft\Bridge\Laravel\Internal\Databases;
use Weft\UsageError;

/**
 * Makes the connections of Laravel's database drivers `pgsql`, `mysql`, `mariadb` and `sqlite` on Weft's pools, in the place of Laravel's
 * own connectors. Connections of this process with the same configuration share one pool.
 *
 * Settings of the session (`charset`, `collation`, `timezone`, `search_path`, `strict`, …) are made once for each connection of the pool.
 */
final class Connector implements ConnectorInterface
{
    /** @param array<string, mixed> $pool arguments of {@see \Weft\Pool\PoolOptions} where the connection's configuration has none */
    public function __construct(private readonly array $pool = [])
    {
    }

    /**
     * @param array<string, mixed> $config
     *
     * @throws UsageError for a configuration that Weft cannot honour
     * @throws DatabaseException
     */
    public function connect(#[\SensitiveParameter] array $config): Pdo
    {
        /** @var array<int, mixed> $attributes */
        $attributes = $config['options'] ?? [];

        $database = Databases::of($config, $this->pool);
        Databases::check($database);

        return new Pdo($database->plainSession(), $attributes);
    }
}
