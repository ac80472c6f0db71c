<?php

declare(strict_types=1);

namespace Weft\Tests\Sql;

use Weft\Sql\Database;
use Weft\Tests\InTask;
use Weft\Tests\Sql\Support\Proxy;

use function Weft\async;
use function Weft\yieldNow;

/** The same inside a task. */
final class PostgresInTaskTest extends PostgresTest
{
    use InTask;

    public function testAQueryIsUnderWayWhileATaskComputesThatHasYieldedBefore(): void
    {
        $this->behindProxy(static function (Database $db, Proxy $proxy): void {
            // A statement is prepared, one round trip, the first time.
            $db->execute('SELECT ?::int', [1])->rows();
            $proxy->trips();
            $query = async(static fn () => $db->execute('SELECT ?::int', [2])->value());
            yieldNow();
            // The task goes on until the proxy, another process, has seen the query: the loop does not turn meanwhile.
            for ($seen = 0, $end = \hrtime(true) + 60e9; $seen === 0 && \hrtime(true) < $end;) {
                $seen = $proxy->trips();
            }

            self::assertSame(1, $seen, 'the query waited until the computation had ended');
            self::assertSame(2, $query->await());
        });
    }
}
