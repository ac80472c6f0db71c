<?php

declare(strict_types=1);

namespace Weft\Tests\Sql;

use Weft\Tests\InTask;

use function Weft\async;
use function Weft\yieldNow;

/** The same inside a task. */
final class PostgresInTaskTest extends PostgresTest
{
    use InTask;

    public function testAQueryIsUnderWayWhileATaskComputesThatHasYieldedBefore(): void
    {
        // A statement is prepared, one round trip, the first time.
        $sql = 'SELECT pg_sleep(?), clock_timestamp()';
        $this->db->execute($sql, [0.0])->rows();
        $query = async(fn () => $this->db->execute($sql, [0.0])->rows()[0]['clock_timestamp']);
        yieldNow();
        for ($until = microtime(true) + 0.35; microtime(true) < $until;) {
        }
        $computed = microtime(true);
        $answered = $query->await();

        self::assertLessThan($computed - 0.1, (float) $answered->format('U.u'), 'the query waited until the computation had ended');
    }
}
