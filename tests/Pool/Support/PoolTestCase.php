<?php

declare(strict_types=1);

namespace Weft\Tests\Pool\Support;

use PHPUnit\Framework\TestCase;
use Weft\Sql\Database;
use Weft\Sql\Transaction;
use Weft\Tests\Sql\Support\Witness;

use function Weft\all;
use function Weft\delay;
use function Weft\timeout;

/** Each test runs against PostgreSQL and against MariaDB. */
abstract class PoolTestCase extends TestCase
{
    use Witness;

    /** @return iterable<string, array{Server}> */
    public static function servers(): iterable
    {
        return Server::all();
    }

    /** @return list<int> ids of `$count` connections that are open at the same time */
    protected static function sessions(Server $server, Database $db, int $count): array
    {
        $sessions = [];
        $join = static function (Transaction $tx) use ($server, $count, &$sessions): void {
            $sessions[] = $tx->execute($server->sessionSql)->value();
            // Each task keeps its connection until all have one.
            while (\count($sessions) < $count) {
                delay(0.002);
            }
        };
        timeout(60.0, static fn () => all(\array_fill(0, $count, static fn () => $db->transaction($join))));
        self::assertCount($count, \array_unique($sessions));

        return $sessions;
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

    /** WEFT_FIGURES=1 prints what the tests have measured. */
    protected function figure(string $text): void
    {
        if (\getenv('WEFT_FIGURES')) {
            \fwrite(\STDERR, "\n{$this->getName()}: $text\n");
        }
    }
}
