<?php

declare(strict_types=1);

namespace Weft\Tests\Pool;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Pool\Creation;
use Weft\Pool\PoolOptions;
use Weft\Pool\Timeouts;
use Weft\Pool\Validation;
use Weft\Sql\ConnectionLostException;
use Weft\Sql\ConnectionNotReadyException;
use Weft\Sql\Database;
use Weft\Sql\ServerDownException;
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
    #[DataProvider('servers')]
    public function testAServerKilledUnderLoadIsServedAtFullRateAfterItsReturnAndWithoutAHerd(Server $server): void
    {
        Server::script() ?? self::markTestSkipped('the server is not one of scripts/services');
        run(function () use ($server): void {
            $db = $server->connect(new PoolOptions(size: 20));
            $load = new Support\Load($db, 100);
            self::eventually(static fn (): bool => $db->stats()['total'] === 20 && $load->done >= 1_000, 'the pool works at its full size');
            $before = $load->rate(0.5);
            self::assertSame([], $load->errors());

            $failures = $db->stats()['connect_failures'];
            $killed = \hrtime(true) / 1e9;
            $server->kill();
            // A session of the killed server may answer once more. A borrower that is not told waits for its time-out of 30 s.
            self::eventually(static function () use ($db, &$thrown, &$seconds): bool {
                [$thrown, $seconds] = self::outcome(static fn () => $db->execute('SELECT 1'));

                return $thrown !== null;
            }, 'a failure');
            self::assertInstanceOf(SqlException::class, $thrown);
            self::assertLessThan(20.0, $seconds, 'while it is down borrowers are told at once');

            $starting = $server->start();
            self::awaitServer($server);
            $down = \hrtime(true) / 1e9 - $killed;
            $failed = $db->stats()['connect_failures'] - $failures;
            // 20 lost at once may each have been tried, then one at a time, at most 250 ms and at least 62 ms apart.
            self::assertLessThan(20 + 8 + $down / 0.0625, $failed, 'attempts to connect while it was down');

            $back = self::eventually(static fn (): bool => $db->stats()['total'] === 20, 'the pool has its full size again');
            // Another pool, which knows of no outage, has the same machine at the same time: half of its rate fails a pool that waits.
            $fresh = $server->connect(new PoolOptions(size: 20));
            $reference = new Support\Load($fresh, 100);
            self::eventually(static fn (): bool => $fresh->stats()['total'] === 20, 'another pool has its full size');
            self::eventually(static function () use ($load, $reference): bool {
                [$done, $wanted] = [$load->done, $reference->done];
                self::eventually(static fn (): bool => $reference->done >= $wanted + 1_000, 'the other pool works');

                return $load->done - $done >= 500;
            }, 'full rate');
            $reference->stop();
            $fresh->close();
            $load->forget();
            $done = $load->done;
            self::eventually(static fn (): bool => $load->done >= $done + 1_000, 'a thousand statements');
            self::assertSame([], $load->errors(), 'errors belong to the outage');
            self::assertLessThanOrEqual(20, $db->stats()['total']);
            self::assertLessThanOrEqual(8, $load->mostConnecting, 'no more than creation.limit at a time');
            $this->figure(\sprintf('%.0f/s before, down %.2f s, %d attempts meanwhile, full size %.0f ms after it answered again', $before, $down, $failed, $back * 1000));
            $load->stop();
            $starting->await();
            $db->close();
        });
        $server->close();
    }

    /** @dataProvider servers */
    #[DataProvider('servers')]
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
                    $tx->execute($server->sleepSql, [300])->rows();
                });
            };
            $tasks = \array_map(static fn () => async(static fn () => self::outcome($statement)), \range(1, 3));
            self::eventually(static function () use (&$busy): bool {
                return \count($busy) === 3;
            }, 'three are busy');
            delay(0.1);
            $server->end(...$busy);
            foreach ($tasks as $task) {
                self::assertInstanceOf(ConnectionLostException::class, timeout(60.0, static fn () => $task->await())[0]);
            }
            all(\array_fill(0, 12, static fn () => self::assertSame(1, $db->execute('SELECT 1')->value())));
            self::assertSame(0, $db->stats()['in_use']);
            self::assertLessThanOrEqual(6, $db->stats()['total']);
            $db->close();
        });
        $server->close();
    }

    /** @dataProvider servers */
    #[DataProvider('servers')]
    public function testAPoolWhoseConnectionsAllDieIsAtItsMinimumAgainAlthoughNobodyBorrows(Server $server): void
    {
        run(function () use ($server): void {
            $db = $server->connect(new PoolOptions(size: 10, minimumIdle: 10));
            $all = static fn (): bool => $db->stats()['idle'] === 10;
            $db->execute('SELECT 1');
            self::eventually($all, 'ten are open');
            $before = self::sessions($server, $db, 10);
            self::eventually($all, 'ten are idle');
            $closed = $db->stats()['closed'];
            $server->end(...$before);
            // Nobody borrows: the upkeep alone notices.
            $seconds = self::eventually(static fn (): bool => $db->stats()['closed'] >= $closed + 10 && $all(), 'the pool is full again');
            self::assertLessThan(20.0, $seconds, 'it did not wait until a connection is validated after 30 s');
            self::assertSame([], \array_intersect($before, self::sessions($server, $db, 10)));
            $this->figure(\sprintf('10 of 10 again after %.0f ms', $seconds * 1000));
            $db->close();
        });
        $server->close();
    }

    /** @dataProvider servers */
    #[DataProvider('servers')]
    public function testABlackHoleCostsAtMostTheBorrowTimeoutAndNeverItsPermit(Server $server): void
    {
        $options = new PoolOptions(size: 3, minimumIdle: 3, timeouts: new Timeouts(borrow: 0.4, create: 1.0, return: 0.3), validation: new Validation(after: 0.1, timeout: 0.2), creation: new Creation(failFast: false));
        $server->behindProxy($options, function (Database $db, Proxy $proxy) use ($server): void {
            run(function () use ($server, $db, $proxy): void {
                self::eventually(static fn (): bool => $db->stats()['idle'] === 3, 'three are idle');
                // One is in the middle of a statement when everything falls silent.
                $victim = async(static fn () => self::outcome(static fn () => timeout(0.5, static fn () => $db->execute($server->sleepSql, [300])->rows())));
                self::eventually(static fn (): bool => $db->stats()['in_use'] === 1, 'a statement is under way');
                $proxy->hold();
                delay(0.15);

                $longest = 0.0;
                foreach (\range(1, 3) as $ignored) {
                    [$thrown, $seconds] = self::outcome(static fn () => $db->execute('SELECT 1'));
                    self::assertInstanceOf(SqlException::class, $thrown);
                    self::assertGreaterThanOrEqual(0.39, $seconds);
                    self::assertLessThan(20.0, $seconds, 'a borrower waits for its time-out and no longer');
                    $longest = \max($longest, $seconds);
                }
                self::assertInstanceOf(ConnectionNotReadyException::class, $thrown, 'there is room, but nothing can be opened');
                self::assertInstanceOf(\Weft\Runtime\TimeoutException::class, $victim->await()[0]);
                $free = self::eventually(static fn (): bool => $db->stats()['in_use'] === 0, 'the permits are free while the silence lasts');

                $proxy->release();
                self::eventually(static function () use ($db): bool {
                    return self::outcome(static fn () => $db->execute('SELECT 1'))[0] === null;
                }, 'it works again');
                $values = all(\array_fill(0, 12, static fn () => $db->execute('SELECT 1')->value()));
                self::assertSame(\array_fill(0, 12, 1), $values);
                self::assertLessThanOrEqual(3, $db->stats()['total']);
                $this->figure(\sprintf('borrow time-out 400 ms: at most %.0f ms; permits free %.0f ms after that', $longest * 1000, $free * 1000));
            });
        });
        $server->close();
    }

    /** @dataProvider servers */
    #[DataProvider('servers')]
    public function testConnectionsThatTheNetworkDropsWhileIdleCostNobodyAnError(Server $server): void
    {
        $server->behindProxy(new PoolOptions(size: 5, minimumIdle: 5), static function (Database $db, Proxy $proxy) use ($server): void {
            run(static function () use ($server, $db, $proxy): void {
                $before = self::sessions($server, $db, 5);
                for ($i = 0; $i < 5; $i++) {
                    self::eventually(static fn (): bool => $db->stats()['idle'] === 5, 'five are idle');
                    $proxy->cut();
                    delay(0.01);
                    $session = $server->session($db);
                    self::assertNotContains($session, $before);
                    $before[] = $session;
                }
            });
        });
    }

    /** @dataProvider servers */
    #[DataProvider('servers')]
    public function testEachIdleConnectionIsKeptAlive(Server $server): void
    {
        $options = new PoolOptions(size: 5, minimumIdle: 5, validation: new Validation(keepalive: 0.1));
        $server->behindProxy($options, static function (Database $db, Proxy $proxy) use ($server): void {
            run(static function () use ($server, $db, $proxy): void {
                self::sessions($server, $db, 5);
                $created = $db->stats()['created'];
                $proxy->trips();
                self::eventually(static fn (): bool => $proxy->leastTrips() >= 5, 'five keepalives on each connection');
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
                $begin = \hrtime(true);
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
                self::assertLessThan(20.0, $slowest, 'nobody waits for the time-out of 30 s');
                [$thrown, $seconds] = self::outcome(static fn () => $db->execute('SELECT 1'));
                self::assertInstanceOf(ServerDownException::class, $thrown);
                self::assertLessThan(20.0, $seconds);
                $before = $db->stats()['connect_failures'];
                // Eight at once, four more after 10 to 125 ms each, then one at a time, at least 125 ms apart.
                $most = static fn (): float => 8 + 4 + (\hrtime(true) - $begin) / 1e9 / 0.125;
                self::assertLessThanOrEqual($most(), $before, 'a hundred borrowers are no hundred attempts');
                $next = \hrtime(true);
                do {
                    self::outcome(static fn () => $db->execute('SELECT 1'));
                    delay(0.001);
                    $seconds = (\hrtime(true) - $next) / 1e9;
                } while ($seconds < 1.0);
                self::assertLessThanOrEqual($most(), $db->stats()['connect_failures']);
                $this->figure(\sprintf('%s: 100 borrowers told within %.1f ms, %d attempts, %d more in the next %.1f s', $scheme, $slowest * 1000, $before, $db->stats()['connect_failures'] - $before, $seconds));
                $db->close();
            });
        }
    }

    /** Waits until a statement is answered on a connection of its own. */
    private static function awaitServer(Server $server): void
    {
        self::eventually(static function () use ($server): bool {
            $db = $server->connect(new PoolOptions(size: 1, timeouts: new Timeouts(borrow: 20.0)));
            $works = self::outcome(static fn () => $db->execute('SELECT 1'))[0] === null;
            $db->close();

            return $works;
        }, 'the server is back');
    }
}
