<?php

declare(strict_types=1);

namespace Weft\Bridge\Internal;

use Weft\Sql\Database;

/**
 * The databases that the connections of a framework share in this process, one for each configuration. A database without a connection that
 * uses it is closed, so that configurations which are used no more, such as those of tenants, leave nothing open.
 *
 * @internal
 */
final class SharedDatabases
{
    /** Databases that {@see keep()} leaves open without a connection. */
    private const MOST_KEPT = 16;

    /** @var array<string, \WeakReference<Database>> the sessions of its connections hold a database */
    private static array $open = [];

    /** @var array<string, Database> the least recently asked for first */
    private static array $kept = [];

    /**
     * @param string $key all that distinguishes the database from others of this process
     * @param \Closure(): Database $connect
     */
    public static function of(#[\SensitiveParameter] string $key, \Closure $connect): Database
    {
        $open = self::find($key);
        if ($open !== null) {
            return $open;
        }
        $database = $connect();
        // Connecting waits: another task may have been faster.
        $faster = self::find($key);
        if ($faster !== null) {
            $database->close();

            return $faster;
        }
        self::$open[$key] = \WeakReference::create($database);

        return $database;
    }

    /**
     * As {@see of()}, for a framework that makes a connection for each request: it finds the pool of the last one. Of the databases that no
     * connection uses, the most recent ones stay open.
     *
     * @param \Closure(): Database $connect
     */
    public static function keep(#[\SensitiveParameter] string $key, \Closure $connect): Database
    {
        $database = self::of($key, $connect);
        unset(self::$kept[$key]);
        self::$kept[$key] = $database;
        if (\count(self::$kept) > self::MOST_KEPT) {
            unset(self::$kept[\array_key_first(self::$kept)]);
        }

        return $database;
    }

    private static function find(#[\SensitiveParameter] string $key): ?Database
    {
        $database = (self::$open[$key] ?? null)?->get();
        if ($database === null) {
            self::$open = \array_filter(self::$open, static fn(\WeakReference $reference): bool => $reference->get() !== null);
        }

        return $database;
    }
}
