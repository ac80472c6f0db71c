<?php

declare(strict_types=1);

namespace Weft\Tests\Pool;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Pool\Hooks;
use Weft\Pool\Lifetime;
use Weft\Pool\PoolOptions;
use Weft\Sql\Database;
use Weft\Tests\Pool\Support\Load;
use Weft\Tests\Pool\Support\PoolTestCase;
use Weft\Tests\Pool\Support\Server;

use function Weft\all;
use function Weft\delay;
use function Weft\run;

/** How many connections there are, and for how long. */
final class LifeTest extends PoolTestCase
{
    /**
     * HikariCP's spike: 150 ms to connect, 2 ms a query, 50 borrowers at once, 5 connections ready, 50 allowed. Here none of
     * the new connections is ready before the last query is answered, so the result does not depend on the machine.
     *
     * @dataProvider servers
     */
    #[DataProvider('servers')]
    public function testASpikeIsServedByFewConnections(Server $server): void
    {
        run(function () use ($server): void {
            $spike = false;
            $slow = new Hooks(created: static function () use (&$spike): void {
                do {
                    delay(0.15);
                } while ($spike);
            });
            $db = $server->connect(new PoolOptions(size: 50, minimumIdle: 5), $slow);
            $db->execute('SELECT 1');
            self::eventually(static fn (): bool => $db->stats()['idle'] >= 5 && $db->stats()['connecting'] === 0, 'five are ready');
            $ready = $db->stats()['created'];
            $spike = true;
            [$thrown, $seconds] = self::outcome(static fn () => all(\array_fill(0, 50, static fn () => $db->execute($server->sleepSql, [0.002])->rows())));
            self::assertNull($thrown);
            self::assertSame($ready, $db->stats()['created'], 'five connections have served all');
            $spike = false;
            self::eventually(static fn (): bool => $db->stats()['connecting'] === 0, 'what was begun is open');
            $opened = $db->stats()['created'] - $ready;
            self::assertLessThanOrEqual(10, $opened);
            $db->close();
            $this->figure(\sprintf('%d opened, done after %.0f ms', $opened, $seconds * 1000));
        });
    }

    /** @dataProvider servers */
    #[DataProvider('servers')]
    public function testIdleConnectionsAreClosedDownToTheMinimumAlthoughOneBorrowerContinues(Server $server): void
    {
        run(static function () use ($server): void {
            $db = $server->connect(new PoolOptions(size: 10, minimumIdle: 2, lifetime: new Lifetime(idle: 0.3)));
            self::sessions($server, $db, 10);
            // Ten in turn would keep all of them warm if the one used longest ago went first.
            $used = [];
            self::eventually(static function () use ($server, $db, &$used): bool {
                $used[$server->session($db)] = true;

                return $db->stats()['total'] <= 3;
            }, 'the pool shrinks');
            self::assertCount(1, $used);
            self::assertLessThanOrEqual(3, $db->stats()['total']);
            self::assertGreaterThanOrEqual(2, $db->stats()['total']);
            self::eventually(static fn (): bool => $db->stats()['total'] === $server->sessions(), 'the server has as many');
            $db->close();
        });
        $server->close();
    }

    /** @dataProvider servers */
    #[DataProvider('servers')]
    public function testLifetimesOfConnectionsOpenedTogetherEndApartAndNeverInterruptAStatement(Server $server): void
    {
        run(function () use ($server): void {
            // A process that stands still past the lifetime ends them all at once: then it is tried again.
            for ($attempt = 0, $spread = 0.0; $attempt < 10 && $spread <= 0.6; $attempt++) {
                // A twentieth of the 60 s of the reference case.
                $closed = [];
                $begin = \hrtime(true);
                $note = static function () use (&$closed, $begin): void {
                    $closed[] = (\hrtime(true) - $begin) / 1e9;
                };
                $db = $server->connect(new PoolOptions(size: 20, minimumIdle: 20, lifetime: new Lifetime(max: 3.0)), new Hooks(closed: $note));
                $load = new Load($db, 20);
                self::eventually(static fn (): bool => $db->stats()['total'] === 20, 'all are open');
                self::eventually(static function () use (&$closed): bool {
                    return \count($closed) >= 20;
                }, 'all have been renewed');
                $load->stop();
                self::assertSame([], $load->errors());
                $first = \array_slice($closed, 0, 20);
                $spread = $first[19] - $first[0];
                self::assertGreaterThanOrEqual(1.5, $first[0]);
                self::assertLessThanOrEqual(20, $db->stats()['total']);
                $db->close();
            }
            self::assertGreaterThan(0.6, $spread, 'the ends are spread over most of 40 % of the lifetime');
            $this->figure(\sprintf('20 connections, 3 s: ended from %.2f to %.2f s under load, no error', $first[0], $first[19]));
        });
    }

    /** @dataProvider servers */
    #[DataProvider('servers')]
    public function testWithAMinimumTheFirstStatementAfterTheStartWaitsForNoConnection(Server $server): void
    {
        run(static function () use ($server): void {
            $db = $server->connect(new PoolOptions(size: 4, minimumIdle: 2), new Hooks(created: static function () use (&$opening): void {
                while ($opening) {
                    delay(0.01);
                }
            }));
            self::eventually(static fn (): bool => $db->stats()['idle'] === 2, 'warm without a borrower');
            $opening = true;
            \Weft\timeout(60.0, static fn () => $db->execute('SELECT 1')->rows());
            $opening = false;
            self::assertSame(2, $db->stats()['created']);
            $db->close();
        });
    }

    /** @dataProvider servers */
    #[DataProvider('servers')]
    public function testAStatementIsPreparedOnceAndItsResultMayChangeItsForm(Server $server): void
    {
        $server->behindProxy(new PoolOptions(size: 1), static function (Database $db, $proxy): void {
            run(static function () use ($db, $proxy): void {
                $db->execute('DROP TABLE IF EXISTS weft_pool_form');
                $db->execute('CREATE TABLE weft_pool_form (a INT)');
                try {
                    $db->execute('INSERT INTO weft_pool_form VALUES (?)', [1]);
                    $select = static fn (): array => $db->execute('SELECT * FROM weft_pool_form WHERE a = ?', [1])->rows();
                    $select();
                    $proxy->trips();
                    self::assertSame([['a' => 1]], $select());
                    self::assertSame(1, $proxy->trips(), 'prepared before: one round trip');
                    // The form of a prepared statement's result changes (SQLSTATE 0A000 of PostgreSQL).
                    $db->execute("ALTER TABLE weft_pool_form ADD b INT DEFAULT 2");
                    self::assertSame([['a' => 1, 'b' => 2]], $select());
                    $db->execute('SET ' . ($db->driver()->value === 'mysql' ? 'SESSION lock_wait_timeout = 7' : 'lock_timeout = 7'));
                    self::assertSame([['a' => 1, 'b' => 2]], $select(), 'after its session was cleaned');
                    if ($db->driver()->value === 'postgres') {
                        $db->execute('DISCARD ALL');
                        self::assertSame([['a' => 1, 'b' => 2]], $select());
                    }
                } finally {
                    $db->execute('DROP TABLE weft_pool_form');
                }
            });
        });
    }
}
