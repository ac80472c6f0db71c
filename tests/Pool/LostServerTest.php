<?php

declare(strict_types=1);

namespace Weft\Tests\Pool;

use Weft\Pool\PoolOptions;
use Weft\Sql\ConnectionLost;
use Weft\Sql\ConnectionNotReady;
use Weft\Sql\Database;
use Weft\Sql\ServerDown;
use Weft\Sql\SqlException;
use Weft\Tests\Pool\Support\PoolTestCase;
use Weft\Tests\Pool\Support\Server;
use Weft\Tests\Sql\Support\Proxy;

use function Weft\all;
use function Weft\async;
use function Weft\delay;
use function Weft\run;
use function Weft\timeout;

/** What a pool does when its connections, or the whole server, go away. */
final class LostServerTest extends PoolTestCase
{
    protected function tearDown(): void
    {
        Server::startKilled();
    }

    /** @dataProvider servers */
    public function testAServerKilledUnderLoadIsServedAtFullRateWithinASecondOfItsReturnAndWithoutAHerd(Server $server): void
    {
        Server::script() ?? self::markTestSkipped('the server is not one of scripts/services');
        run(function () use ($server): void {
            $db = $server->connect(new PoolOptions(size: 20));
            $load = new Support\Load($db, 100);
            delay(1.0);
            $before = $load->rate(0.5);
            self::assertSame([], $load->errors());
            self::assertGreaterThan(100, $before);

            $server->kill();
            $killed = \hrtime(true) / 1e9;
            $attempts = $this->attempts($db);
            delay(0.5);
            // A borrower that is not told waits for its time-out of 30 s.
            [$thrown, $seconds] = self::outcome(static fn () => $db->execute('SELECT 1'));
            self::assertInstanceOf(SqlException::class, $thrown);
            self::assertLessThan(15.0, $seconds, 'while it is down borrowers are told at once');

            $starting = $server->start();
            $returned = self::awaitServer($server);
            $down = $returned - $killed;
            $made = $this->attempts($db) - $attempts;
            // 20 lost at once may each have been tried, then one at a time, at most 250 ms and at least 62 ms apart.
            self::assertLessThan(20 + 8 + $down / 0.0625, $made, 'attempts to connect while it was down');

            // Half of it: whatever else uses the machine by now must not fail the test, a pool that waits must.
            $full = self::eventually(static fn (): bool => $load->rate(0.1) >= 0.5 * $before, 20.0, "full rate after the server's return");
            $load->forget();
            delay(0.5);
            self::assertSame([], $load->errors(), 'errors belong to the outage');
            self::assertLessThanOrEqual(20, $db->stats()['total']);
            self::assertLessThanOrEqual(8, $load->mostConnecting, 'no more than connectLimit at a time');
            $this->figure(\sprintf('%.0f/s before, down %.2f s, %d attempts meanwhile, full rate %.0f ms after it answered again', $before, $down, $made, $full * 1000));
            $load->stop();
            $starting->await();
            $db->close();
        });
        $server->close();
    }

    /** @dataProvider servers */
    public function testSessionsEndedOnTheServerCostTheirOwnersAnErrorAndNobodyElse(Server $server): void
    {
        run(static function () use ($server): void {
            $db = $server->connect(new PoolOptions(size: 6, minimumIdle: 3));
            // Idle ones: nobody notices.
            $idle = self::sessions($server, $db, 6);
            $server->end(...$idle);
            for ($i = 0; $i < 20; $i++) {
                self::assertNotContains($server->session($db), $idle);
            }
            // Busy ones: each statement that was running, and no other.
            $busy = [];
            $statement = static function () use ($server, $db, &$busy): void {
                $db->transaction(static function ($tx) use ($server, &$busy): void {
                    $busy[] = $tx->execute($server->sessionSql)->value();
                    $tx->execute($server->sleepSql, [20])->rows();
                });
            };
            $tasks = \array_map(static fn () => async(static fn () => self::outcome($statement)), \range(1, 3));
            self::eventually(static function () use (&$busy): bool {
                return \count($busy) === 3;
            }, 5.0, 'three are busy');
            delay(0.1);
            $server->end(...$busy);
            foreach ($tasks as $task) {
                self::assertInstanceOf(ConnectionLost::class, timeout(5.0, static fn () => $task->await())[0]);
            }
            all(\array_fill(0, 12, static fn () => self::assertSame(1, $db->execute('SELECT 1')->value())));
            self::assertSame(0, $db->stats()['in_use']);
            self::assertLessThanOrEqual(6, $db->stats()['total']);
            $db->close();
        });
        $server->close();
    }

    /** @dataProvider servers */
    public function testAPoolWhoseConnectionsAllDieIsAtItsMinimumAgainWithinASecondAndNeverDrainsToZero(Server $server): void
    {
        run(function () use ($server): void {
            $db = $server->connect(new PoolOptions(size: 10, minimumIdle: 10));
            $all = static fn (): bool => $db->stats()['idle'] === 10;
            $db->execute('SELECT 1');
            self::eventually($all, 5.0, 'ten are open');
            $before = self::sessions($server, $db, 10);
            self::eventually($all, 5.0, 'ten are idle');
            $closed = $db->stats()['closed'];
            $server->end(...$before);
            // Nobody borrows: the upkeep alone notices.
            $seconds = self::eventually(static fn (): bool => $db->stats()['closed'] >= $closed + 10 && $all(), 20.0, 'refilled');
            self::assertSame([], \array_intersect($before, self::sessions($server, $db, 10)));
            $this->figure(\sprintf('10 of 10 again after %.0f ms', $seconds * 1000));
            $db->close();
        });
        $server->close();
    }

    /** @dataProvider servers */
    public function testABlackHoleCostsAtMostTheBorrowTimeoutAndNeverItsPermit(Server $server): void
    {
        $options = new PoolOptions(size: 3, borrowTimeout: 0.4, createTimeout: 1.0, returnTimeout: 0.3, validateAfter: 0.1, validationTimeout: 0.2);
        $server->behindProxy($options, function (Database $db, Proxy $proxy) use ($server): void {
            run(function () use ($server, $db, $proxy): void {
                all(\array_fill(0, 3, static fn () => $db->execute($server->sleepSql, [0.05])->rows()));
                self::assertSame(3, $db->stats()['idle']);
                // One is in the middle of a statement when everything falls silent.
                $victim = async(static fn () => self::outcome(static fn () => timeout(0.3, static fn () => $db->execute($server->sleepSql, [0.2])->rows())));
                delay(0.05);
                $proxy->hold();
                delay(0.15);

                $longest = 0.0;
                foreach (\range(1, 3) as $ignored) {
                    [$thrown, $seconds] = self::outcome(static fn () => $db->execute('SELECT 1'));
                    self::assertInstanceOf(SqlException::class, $thrown);
                    self::assertGreaterThanOrEqual(0.39, $seconds);
                    self::assertLessThan(10.0, $seconds, 'a borrower waits for its time-out and no longer');
                    $longest = \max($longest, $seconds);
                }
                self::assertInstanceOf(ConnectionNotReady::class, $thrown, 'there is room, but nothing can be opened');
                self::assertInstanceOf(\Weft\Runtime\TimeoutException::class, $victim->await()[0]);
                $free = self::eventually(static fn (): bool => $db->stats()['in_use'] === 0, 15.0, 'the permits are free while the silence lasts');

                $proxy->release();
                self::eventually(static function () use ($db): bool {
                    return self::outcome(static fn () => $db->execute('SELECT 1'))[0] === null;
                }, 20.0, 'it works again');
                $values = all(\array_fill(0, 12, static fn () => $db->execute('SELECT 1')->value()));
                self::assertSame(\array_fill(0, 12, 1), $values);
                self::assertLessThanOrEqual(3, $db->stats()['total']);
                $this->figure(\sprintf('borrow time-out 400 ms: at most %.0f ms; permits free %.0f ms after that', $longest * 1000, $free * 1000));
            });
        });
        $server->close();
    }

    /** @dataProvider servers */
    public function testConnectionsThatTheNetworkDropsWhileIdleCostNobodyAnError(Server $server): void
    {
        $server->behindProxy(new PoolOptions(size: 5, minimumIdle: 5), static function (Database $db, Proxy $proxy) use ($server): void {
            run(static function () use ($server, $db, $proxy): void {
                self::sessions($server, $db, 5);
                $proxy->closeIdleAfter(0.1);
                for ($i = 0; $i < 5; $i++) {
                    self::assertSame(1, $db->execute('SELECT 1')->value());
                    delay(0.4);
                }
                self::assertGreaterThan(0, $proxy->idled());
            });
        });
    }

    /** @dataProvider servers */
    public function testKeptAliveConnectionsAreNotDroppedAtAll(Server $server): void
    {
        $options = new PoolOptions(size: 5, minimumIdle: 5, keepaliveInterval: 0.1);
        $server->behindProxy($options, static function (Database $db, Proxy $proxy) use ($server): void {
            run(static function () use ($server, $db, $proxy): void {
                self::sessions($server, $db, 5);
                $created = $db->stats()['created'];
                $proxy->closeIdleAfter(0.6);
                delay(2.0);
                self::assertSame(0, $proxy->idled());
                self::assertSame($created, $db->stats()['created']);
                self::assertSame(1, $db->execute('SELECT 1')->value());
            });
        });
    }

    public function testAServerThatIsDownIsToldAtOnceAndAskedAgainOnlyByOneAtATime(): void
    {
        foreach (['postgres', 'mysql'] as $scheme) {
            run(function () use ($scheme): void {
                $db = Database::connect("$scheme://weft@127.0.0.1:1/weft", new PoolOptions(size: 50));
                $slowest = 0.0;
                $tasks = [];
                for ($i = 0; $i < 100; $i++) {
                    $tasks[] = async(static fn () => self::outcome(static fn () => $db->execute('SELECT 1')));
                }
                $causes = [];
                foreach ($tasks as $task) {
                    [$thrown, $seconds] = $task->await();
                    $causes[$thrown::class] = true;
                    $slowest = \max($slowest, $seconds);
                }
                self::assertLessThan(15.0, $slowest, 'half of the time-out of a borrower');
                [$thrown, $seconds] = self::outcome(static fn () => $db->execute('SELECT 1'));
                self::assertInstanceOf(ServerDown::class, $thrown);
                self::assertLessThan(15.0, $seconds);
                $before = $db->stats()['connect_failures'];
                self::assertLessThanOrEqual(16, $before, 'a hundred borrowers are no hundred attempts');
                $end = \hrtime(true) + 1e9;
                while (\hrtime(true) < $end) {
                    self::outcome(static fn () => $db->execute('SELECT 1'));
                    delay(0.001);
                }
                self::assertLessThanOrEqual(16, $db->stats()['connect_failures'] - $before);
                $this->figure(\sprintf('%s: 100 borrowers told within %.1f ms, %d attempts, %d more in the next second', $scheme, $slowest * 1000, $before, $db->stats()['connect_failures'] - $before));
                $db->close();
            });
        }
    }

    /** @return list<int> of `$count` connections at once */
    private static function sessions(Server $server, Database $db, int $count): array
    {
        $sessions = [];
        $join = static function ($tx) use ($server, $count, &$sessions): void {
            $sessions[] = $tx->execute($server->sessionSql)->value();
            // Each keeps its own until all have one.
            while (\count($sessions) < $count) {
                delay(0.002);
            }
        };
        timeout(10.0, static fn () => all(\array_fill(0, $count, static fn () => $db->transaction($join))));
        self::assertCount($count, \array_unique($sessions));

        return $sessions;
    }

    private function attempts(Database $db): int
    {
        return $db->stats()['created'] + $db->stats()['connect_failures'];
    }

    /** @return float the moment at which a statement is answered again, on a connection nobody else has to do with */
    private static function awaitServer(Server $server): float
    {
        self::eventually(static function () use ($server): bool {
            $db = $server->connect(new PoolOptions(size: 1, borrowTimeout: 0.5));
            $works = self::outcome(static fn () => $db->execute('SELECT 1'))[0] === null;
            $db->close();

            return $works;
        }, 60.0, 'the server is back');

        return \hrtime(true) / 1e9;
    }
}
