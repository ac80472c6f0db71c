<?php

declare(strict_types=1);

namespace Weft\Bridge\Symfony\Internal;

use Weft\Bus\Internal\Dsn;
use Weft\Bus\Transport;
use Weft\Pool\PoolOptions;
use Weft\Sql\Database;

/**
 * Resources that the kernels of a process share: pools and connections to brokers. Each kernel has services of its own, and all of them would have
 * as many connections.
 *
 * @internal
 */
final class Shared
{
    /** @var array<string, Database> */
    private static array $databases = [];

    /** @var array<string, Transport> */
    private static array $transports = [];

    /** @var array<string, true> */
    private static array $done = [];

    /** @param \Closure(): void $work */
    public static function once(string $what, \Closure $work): void
    {
        if (!isset(self::$done[$what])) {
            $work();
            self::$done[$what] = true;
        }
    }

    /** @param positive-int $size connections of this process */
    public static function database(#[\SensitiveParameter] string $url, int $size): Database
    {
        // Doctrine's configuration has these in its URLs.
        $url = (string) \preg_replace('/([?&])(?:serverVersion|charset)=[^&]*&?/', '$1', $url);

        return self::$databases["$size $url"] ??= Database::connect(\rtrim($url, '?&'), new PoolOptions(size: $size));
    }

    public static function transport(#[\SensitiveParameter] string $dsn, ?Database $database): Transport
    {
        return self::$transports[$dsn] ??= Dsn::connect($dsn, $database);
    }
}
