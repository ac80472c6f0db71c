<?php

declare(strict_types=1);

namespace Weft\Tests\Sql\Support;

use function Weft\delay;

/** What several tests look at. */
trait Witness
{
    /**
     * @template T of \Throwable
     *
     * @param class-string<T> $class
     *
     * @return T
     */
    protected static function thrown(string $class, callable $work, string $message = ''): \Throwable
    {
        try {
            $work();
        } catch (\Throwable $thrown) {
            self::assertInstanceOf($class, $thrown, "{$message}\n{$thrown}");

            return $thrown;
        }
        self::fail("{$class} was not thrown. {$message}");
    }

    /**
     * Waits until `$holds` is true. The deadline only ends a test that hangs.
     *
     * @param \Closure(): bool $holds
     *
     * @return float seconds waited
     */
    protected static function eventually(\Closure $holds, string $what): float
    {
        $begin = \hrtime(true);
        while (!$holds()) {
            self::assertLessThan(60.0, (\hrtime(true) - $begin) / 1e9, "{$what} did not come about");
            delay(0.005);
        }

        return (\hrtime(true) - $begin) / 1e9;
    }

    /** Memory of this process that is not swapped out. */
    protected static function residentBytes(): int
    {
        \preg_match('/^VmRSS:\s+(\d+) kB/m', (string) \file_get_contents('/proc/self/status'), $match);

        return (int) $match[1] * 1024;
    }

    /** The DSN of a PostgreSQL server. */
    protected static function postgres(): string
    {
        $dsn = \getenv('DATABASE_URL');
        self::assertNotFalse($dsn, 'DATABASE_URL is not set: run `make services`');

        return $dsn;
    }
}
