<?php

declare(strict_types=1);

namespace Weft\Tests\Pool\Support;

use PHPUnit\Framework\TestCase;

use function Weft\delay;

/** Each test runs against PostgreSQL and against MariaDB. */
abstract class PoolTestCase extends TestCase
{
    /** @return iterable<string, array{Server}> */
    public static function servers(): iterable
    {
        return Server::all();
    }

    /** Waits, in a task, until `$holds` is true. */
    protected static function eventually(\Closure $holds, float $within, string $what): float
    {
        $begin = \hrtime(true);
        while (!$holds()) {
            self::assertLessThan($within, (\hrtime(true) - $begin) / 1e9, $what);
            delay(0.005);
        }

        return (\hrtime(true) - $begin) / 1e9;
    }

    /** @return array{\Throwable|null, float} what it threw, and its seconds */
    protected static function outcome(\Closure $call): array
    {
        $begin = \hrtime(true);
        try {
            $call();
        } catch (\Throwable $thrown) {
            return [$thrown, (\hrtime(true) - $begin) / 1e9];
        }

        return [null, (\hrtime(true) - $begin) / 1e9];
    }

    /** WEFT_FIGURES=1 prints what the tests have measured, for docs/pool.md. */
    protected function figure(string $text): void
    {
        if (\getenv('WEFT_FIGURES')) {
            \fwrite(\STDERR, "\n{$this->getName()}: $text\n");
        }
    }
}
