<?php

declare(strict_types=1);

namespace Weft\Tests\Pool;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Pool\PoolOptions;
use Weft\Sql\Database;
use Weft\Sql\Transaction;
use Weft\Tests\Pool\Support\PoolTestCase;
use Weft\Tests\Pool\Support\Server;
use Weft\Tests\Sql\Support\Proxy;

use function Weft\run;

/** What statements that share a round trip are worth where one takes ten milliseconds. */
final class PipeliningTest extends PoolTestCase
{
    private const STATEMENTS = 10;

    /** @dataProvider servers */
    #[DataProvider('servers')]
    public function testTenStatementsOnOneConnectionTakeAsLongAsTheirRoundTripsTake(Server $server): void
    {
        $server->behindProxy(new PoolOptions(size: 1), function (Database $db, Proxy $proxy): void {
            run(function () use ($db, $proxy): void {
                $singly = static fn () => $db->transaction(static function (Transaction $tx): void {
                    for ($i = 0; $i < self::STATEMENTS; ++$i) {
                        self::assertSame($i, $tx->execute('SELECT ? + 0', [$i])->value());
                    }
                });
                $together = static fn () => $db->transaction(static function (Transaction $tx): void {
                    for ($i = 0; $i < self::STATEMENTS; ++$i) {
                        $tx->execute('SELECT ? + 0', [$i]);
                    }
                });
                $singly();
                $together();
                $proxy->delay(0.01);
                $proxy->trips();
                $singly();
                self::assertSame(self::STATEMENTS + 1, $proxy->trips(), 'one for each statement, one for the commit');
                $together();
                $trips = $proxy->trips();
                self::assertSame($db->driver()->value === 'postgres' ? 1 : 2, $trips, 'MySQL is told to commit when it has answered');

                [$alone, $shared] = [\INF, \INF];
                // The fastest of several in turn, so that a busy machine disturbs neither.
                for ($i = 0; $i < 9; ++$i) {
                    $alone = \min($alone, self::seconds($singly));
                    $shared = \min($shared, self::seconds($together));
                }
                $ratio = $alone / $shared;
                $this->figure(\sprintf('%.1f times the rate, %d round trips against %d', $ratio, $trips, self::STATEMENTS + 1));
                self::assertGreaterThan($trips === 1 ? 8.0 : 4.0, $ratio);
            });
        });
    }

    private static function seconds(\Closure $work): float
    {
        $begin = \hrtime(true);
        $work();

        return (\hrtime(true) - $begin) / 1e9;
    }
}
