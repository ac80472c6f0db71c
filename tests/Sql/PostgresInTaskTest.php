<?php

declare(strict_types=1);

namespace Weft\Tests\Sql;

use function Weft\async;
use function Weft\run;
use function Weft\yieldNow;

/** The same inside a task, where waiting suspends instead of blocking. */
final class PostgresInTaskTest extends PostgresTest
{
    protected function runTest(): mixed
    {
        return run(fn (): mixed => parent::runTest());
    }

    public function testAQueryIsUnderWayWhileATaskComputesThatHasYieldedBefore(): void
    {
        // A statement is prepared, one round trip, the first time.
        $this->db->execute('SELECT pg_sleep(?)', [0.0]);
        $started = microtime(true);
        $query = async(fn () => $this->db->execute('SELECT pg_sleep(?)', [0.3]));
        yieldNow();
        while (microtime(true) < $started + 0.35) {
        }
        $query->await();

        self::assertLessThan(0.55, microtime(true) - $started, 'the query waited until the computation had ended');
    }
}
