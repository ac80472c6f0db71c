<?php

declare(strict_types=1);

namespace Weft\Bridge\Symfony\Internal;

use Weft\Bus\Internal\Dsn;
use Weft\Bus\Transport;
use Weft\Exception;
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

    /** @var array<string, \Closure(): int> the depths of queues, by name */
    private static array $queues = [];

    /** @var (\Closure(): array<string, int>)|null where this process serves */
    private static ?\Closure $kernels = null;

    /**
     * Remembers the kernels for the profiler.
     *
     * @param \Closure(): array<string, int> $kernels
     */
    public static function serves(\Closure $kernels): void
    {
        self::$kernels = $kernels;
    }

    /**
     * Remembers a queue for the profiler.
     *
     * @param \Closure(): int $depth
     */
    public static function uses(string $queue, \Closure $depth): void
    {
        self::$queues[$queue] ??= $depth;
    }

    /** @return array<string, int|string> messages by queue, or why they are not known */
    public static function depths(): array
    {
        $depths = [];
        foreach (self::$queues as $queue => $depth) {
            try {
                $depths[$queue] = $depth();
            } catch (Exception $unknown) {
                $depths[$queue] = $unknown->getMessage();
            }
        }

        return $depths;
    }

    /** @return array<string, array{size: int, in_use: int, idle: int, waiting: int}> kernels, and connections by host and database; SQLite has no pool */
    public static function pools(): array
    {
        $pools = self::$kernels === null ? [] : ['kernels' => self::health((self::$kernels)())];
        foreach (self::$databases as $url => $database) {
            $stats = $database->stats();
            $parts = \parse_url(\explode(' ', $url, 2)[1]) ?: [];
            if ($stats !== []) {
                $pools[($parts['host'] ?? '') . ($parts['path'] ?? '')] = self::health($stats);
            }
        }

        return $pools;
    }

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
        $url = (string) \preg_replace('/(?<=[?&])(?:serverVersion|charset)=[^&]*(?:&|$)/D', '', $url);

        return self::$databases["$size $url"] ??= Database::connect(\rtrim($url, '?&'), new PoolOptions(size: $size));
    }

    public static function transport(#[\SensitiveParameter] string $dsn, ?Database $database): Transport
    {
        return self::$transports[$dsn] ??= Dsn::connect($dsn, $database);
    }

    /**
     * @param array<string, int|float|array<string, int>> $stats
     *
     * @return array{size: int, in_use: int, idle: int, waiting: int}
     */
    private static function health(array $stats): array
    {
        return ['size' => (int) $stats['size'], 'in_use' => (int) $stats['in_use'], 'idle' => (int) $stats['idle'], 'waiting' => (int) $stats['waiting']];
    }
}
