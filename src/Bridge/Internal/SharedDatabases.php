<?php

declare(strict_types=1);

namespace Weft\Bridge\Internal;

use Weft\Sql\Database;

/**
 * The databases that the connections of a framework share in this process, one for each configuration.
 *
 * @internal
 */
final class SharedDatabases
{
    /** @var array<string, Database> */
    private static array $open = [];

    /**
     * @param string $key all that distinguishes the database from others of this process
     * @param \Closure(): Database $connect
     */
    public static function of(#[\SensitiveParameter] string $key, \Closure $connect): Database
    {
        if (isset(self::$open[$key])) {
            return self::$open[$key];
        }
        $database = $connect();
        // Connecting waits: another task may have been faster.
        if (isset(self::$open[$key])) {
            $database->close();

            return self::$open[$key];
        }

        return self::$open[$key] = $database;
    }
}
