<?php

declare(strict_types=1);

namespace Weft\Tests\Pool;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Native;
use Weft\Pool\PoolOptions;
use Weft\Pool\Timeouts;
use Weft\Runtime\CancelledException;
use Weft\Runtime\TimeoutException;
use Weft\Sql\ConnectionNotReadyException;
use Weft\Pool\NestedBorrowException;
use Weft\Pool\PoolClosedException;
use Weft\Pool\PoolExhaustedException;
use Weft\Sql\Transaction;
use Weft\UsageError;
use Weft\Tests\Cli\Application;
use Weft\Tests\Cli\Supervised;
use Weft\Tests\Pool\Support\Load;
use Weft\Tests\Pool\Support\PoolTestCase;
use Weft\Tests\Pool\Support\Server;

use function Weft\all;
use function Weft\async;
use function Weft\delay;
use function Weft\run;
use function Weft\timeout;

/** What a running pool can be told, and what it tells. */
final class RunTimeTest extends PoolTestCase
{
    /** @dataProvider servers */
    #[DataProvider('servers')]
    public function testUnderLoadItIsResizedPausedResetAndDrainedWithoutAnErrorOrOneTooMany(Server $server): void
    {
        run(static function () use ($server): void {
            $db = $server->connect(new PoolOptions(size: 16));
            $load = new Load($db, 32);
            self::eventually(static fn (): bool => $db->stats()['total'] === 16, 'all 16 connections are open');

            $db->resize(4);
            self::eventually(static fn (): bool => $db->stats()['total'] <= 4, 'the pool shrinks as leases end');
            self::eventually(static fn (): bool => $server->sessions() <= 4, 'the server has four sessions, too');

            $db->resize(12);
            self::eventually(static fn (): bool => $db->stats()['total'] === 12, 'the pool grows');

            $db->pause();
            self::eventually(static fn (): bool => $db->stats()['in_use'] === 0, 'nothing is lent');
            // The last statements are answered; their tasks may still have to notice.
            self::eventually(static fn (): bool => $load->done === $db->stats()['borrowed'], 'every task has its answer');
            $before = $load->done;
            delay(0.1);
            self::assertSame([$before, $before], [$load->done, $db->stats()['borrowed']]);
            $db->resume();

            [$created, $borrowed] = [$db->stats()['created'], $load->done];
            $db->reset();
            self::eventually(static fn (): bool => $db->stats()['created'] >= $created + 12, 'all connections are replaced');
            self::assertLessThanOrEqual(12, $db->stats()['total']);
            self::eventually(static fn (): bool => $load->done > $borrowed, 'the new connections are used');
            self::assertSame([], $load->errors());

            $load->stop();
            self::assertSame([], $load->errors());
            $db->close();
            self::eventually(static fn (): bool => $server->sessions() === 0, 'nothing is left on the server');
        });
        $server->close();
    }

    /** @dataProvider servers */
    #[DataProvider('servers')]
    public function testDrainingLetsWhatRunsFinishAndRefusesTheRest(Server $server): void
    {
        run(static function () use ($server): void {
            $db = $server->connect(new PoolOptions(size: 2));
            $finish = false;
            $work = static function (Transaction $tx) use ($server, &$finish): void {
                $tx->execute('SELECT 1')->rows();
                while (!$finish) {
                    delay(0.005);
                }
                $tx->execute($server->sleepSql, [0.05])->rows();
            };
            $running = [];
            foreach ([1, 2] as $ignored) {
                $running[] = async(static fn () => self::outcome(static fn () => $db->transaction($work)));
            }
            self::eventually(static fn (): bool => $db->stats()['in_use'] === 2, 'both connections are lent');
            $waiting = async(static fn () => self::outcome(static fn () => $db->execute('SELECT 1')));
            self::eventually(static fn (): bool => $db->stats()['waiting'] === 1, 'a third task waits');
            $closing = async($db->close(...));
            self::assertInstanceOf(PoolClosedException::class, $waiting->await()[0]);
            self::assertFalse($closing->isDone(), 'closing waits for what runs');
            $finish = true;
            foreach ($running as $task) {
                self::assertNull($task->await()[0]);
            }
            $closing->await();
            self::assertInstanceOf(PoolClosedException::class, self::outcome(static fn () => $db->execute('SELECT 1'))[0]);
        });
    }

    /** @dataProvider servers */
    #[DataProvider('servers')]
    public function testATaskThatHoldsAConnectionItselfIsToldSoInsteadOfWaitingForItself(Server $server): void
    {
        $test = static function () use ($server): void {
            $db = $server->connect(new PoolOptions(size: 2));
            $holding = [
                static fn () => $db->transaction(static function (Transaction $tx) use ($db): void {
                    $tx->execute('SELECT 1')->rows();
                    $db->close();
                }),
                static function () use ($db): void {
                    foreach ($db->stream('SELECT 1 UNION SELECT 2 UNION SELECT 3', chunk: 1) as $ignored) {
                        $db->close();
                    }
                },
            ];
            foreach ($holding as $close) {
                [$refused] = self::outcome($close);
                self::assertInstanceOf(UsageError::class, $refused);
                self::assertStringContainsString('cannot be closed by a task that holds one of its connections, borrowed at ' . __FILE__, $refused->getMessage());
                self::assertEquals(1, $db->execute('SELECT 1')->value());
            }
            $db->close();
        };
        $test();
        run(static fn () => timeout(60.0, $test));
    }

    /** @dataProvider servers */
    #[DataProvider('servers')]
    public function testAStatementThatATaskHasGivenUpDoesNotKeepThePoolFromClosing(Server $server): void
    {
        run(static fn () => timeout(60.0, static function () use ($server): void {
            $db = $server->connect(new PoolOptions(size: 2));
            $db->execute('SELECT 1');
            [$late] = self::outcome(static fn () => timeout(0.05, static fn () => $db->execute($server->sleepSql, [300])->rows()));
            $db->close();
            self::assertInstanceOf(TimeoutException::class, $late);
        }));
    }

    /** @dataProvider servers */
    #[DataProvider('servers')]
    public function testEachCauseHasItsExceptionAndExhaustionNamesTheHolders(Server $server): void
    {
        run(static function () use ($server): void {
            $db = $server->connect(new PoolOptions(size: 2, minimumIdle: 2, timeouts: new Timeouts(borrow: 0.1), name: 'books'));
            self::eventually(static fn (): bool => $db->stats()['idle'] === 2, 'both connections are open');
            $hold = static fn () => $db->execute($server->sleepSql, [300])->rows();
            $line = __LINE__ - 1;
            $holders = [async($hold), async($hold)];
            self::eventually(static fn (): bool => $db->stats()['in_use'] === 2, 'both connections are lent');
            [$thrown, $seconds] = self::outcome(static fn () => $db->execute('SELECT 1'));
            self::assertInstanceOf(PoolExhaustedException::class, $thrown);
            self::assertGreaterThanOrEqual(0.1, $seconds);
            self::assertStringContainsString('pool "books" is exhausted: 2 of 2 connections in use, 1 waiting, timed out after 100ms; held by task #', $thrown->getMessage());
            self::assertMatchesRegularExpression('~for \d+\.\d+ s from ' . \preg_quote(__FILE__, '~') . ":$line, last statement: " . \preg_quote($server->sleepSql, '~') . '; task~', $thrown->getMessage());
            foreach ($holders as $holder) {
                $holder->cancel();
                self::thrown(CancelledException::class, $holder->await(...));
            }
            $db->close();

            $opening = true;
            $slow = $server->connect(new PoolOptions(size: 2, timeouts: new Timeouts(borrow: 0.1)), new \Weft\Pool\Hooks(created: static function () use (&$opening): void {
                while ($opening) {
                    delay(0.01);
                }
            }));
            self::assertInstanceOf(ConnectionNotReadyException::class, self::outcome(static fn () => $slow->execute('SELECT 1'))[0]);
            $opening = false;
            $slow->close();

            $nested = $server->connect(new PoolOptions(size: 1, timeouts: new Timeouts(borrow: 60.0)));
            [$thrown, $seconds] = self::outcome(static fn () => $nested->transaction(static function (Transaction $tx) use ($nested): void {
                $tx->execute('SELECT 1')->rows();
                $nested->execute('SELECT 2');
            }));
            self::assertInstanceOf(NestedBorrowException::class, $thrown);
            self::assertLessThan(30.0, $seconds, 'a deadlock is told at once');
            self::assertSame(1, $nested->execute('SELECT 1')->value());
            $nested->close();
        });
    }

    /** @dataProvider servers */
    #[DataProvider('servers')]
    public function testNothingIsHeldBeforeTheFirstStatementTravelsNorBetweenStatements(Server $server): void
    {
        run(static function () use ($server): void {
            $db = $server->connect(new PoolOptions(size: 1));
            $tx = $db->begin();
            $tx->execute('SELECT 1');
            self::assertSame(1, $db->execute('SELECT 1')->value(), 'the only connection is free while other things are done');
            self::assertSame(0, $db->stats()['in_use']);
            $tx->commit();
            self::assertSame([0, 1], [$db->stats()['in_use'], $db->stats()['created']]);
            $db->close();
        });
    }

    /** @dataProvider servers */
    #[DataProvider('servers')]
    public function testATotalHoldsForAllWorkersTogetherAndTwiceAsManyWhileTheyAreReloaded(Server $server): void
    {
        $dsn = \var_export($server->dsn(), true);
        $application = new Application(<<<PHP
            \$db = Weft\\Sql\\Database::connect($dsn, new Weft\\Pool\\PoolOptions(sizeTotal: 7));
            foreach (range(1, 8) as \$i) {
                async(static fn () => \$db->transaction(static function (\$tx): void {
                    \$tx->execute('SELECT 1')->rows();
                    delay(1.0);
                }));
            }
            Worker::untilStopped();
            PHP);
        $run = new Supervised($application->file, ['--workers=3']);
        foreach ([1, 2, 3] as $ignored) {
            $run->wait('is ready');
        }
        for ($end = \microtime(true) + 60.0; $server->sessions() < 7; \usleep(10_000)) {
            self::assertLessThan($end, \microtime(true), 'seven are open');
        }
        self::assertSame(7, $this->mostSessions($server, 0.6));

        $run->signal(\SIGHUP);
        $most = $this->mostSessions($server, 0.6);
        $run->wait('reload finished');
        $this->figure("7 of 7 over 3 workers, $most during a reload");
        self::assertLessThanOrEqual(14, $most);
        for ($end = \microtime(true) + 60.0; $server->sessions() > 7; \usleep(10_000)) {
            self::assertLessThan($end, \microtime(true), 'the old workers have ended');
        }
        self::assertLessThanOrEqual(7, $this->mostSessions($server, 0.3));

        $run->signal(\SIGTERM);
        self::assertSame(0, $run->end(), $run->messages() . $run->other);
        $server->close();
    }

    private function mostSessions(Server $server, float $seconds): int
    {
        $most = 0;
        for ($end = \microtime(true) + $seconds; \microtime(true) < $end; \usleep(10_000)) {
            $most = \max($most, $server->sessions());
        }

        return $most;
    }

    /** @dataProvider servers */
    #[DataProvider('servers')]
    public function testItsNumbersAreMetricsAndHistogramsCountWhatHappened(Server $server): void
    {
        $name = 'metrics-' . \bin2hex(\random_bytes(4));
        run(static function () use ($server, $name): void {
            $db = $server->connect(new PoolOptions(size: 2, name: $name));
            self::sessions($server, $db, 2);
            self::eventually(static fn (): bool => $db->stats()['idle'] === 2, 'both connections are idle');
            all(\array_fill(0, 8, static fn () => $db->execute($server->sleepSql, [0.02])->rows()));
            self::eventually(static fn (): bool => $db->stats()['idle'] === 2, 'both connections are idle again');
            $stats = $db->stats();
            self::assertSame([10, 2, 0, 2], [$stats['borrowed'], $stats['created'], $stats['in_use'], $stats['idle']]);
            self::assertSame([10, 2], [\array_sum($stats['usage_histogram']), \array_sum($stats['creation_histogram'])]);
            self::assertGreaterThanOrEqual(8, \array_sum($stats['wait_histogram']));
            self::assertGreaterThan(0.1, $stats['usage_seconds']);
            self::assertSame(['1.0E-6', '4.0E-6'], \array_map(static fn (string $bound): string => \sprintf('%.1E', (float) $bound), \array_slice(\array_keys($stats['wait_histogram']), 0, 2)));
            $db->close();
            self::eventually(static fn (): bool => \str_contains(Native\metrics(), "weft_pool_closed_total{pool=\"$name\"} 2\n"), 'the metrics show both connections closed');
            self::eventually(static fn (): bool => \str_contains(Native\metrics(), "weft_pool_size{pool=\"$name\"} 0\n"), 'the pool has taken its size back');
        });
        $metrics = Native\metrics();
        foreach (
            [
            "weft_pool_connections{pool=\"$name\",state=\"idle\"} 0",
            "weft_pool_connections{pool=\"$name\",state=\"in_use\"} 0",
            "weft_pool_connections{pool=\"$name\",state=\"connecting\"} 0",
            "weft_pool_waiting{pool=\"$name\"} 0",
            "weft_pool_borrowed_total{pool=\"$name\"} 10",
            "weft_pool_created_total{pool=\"$name\"} 2",
            "weft_pool_closed_total{pool=\"$name\"} 2",
            "weft_pool_broken_total{pool=\"$name\"} 0",
            "weft_pool_expired_total{pool=\"$name\"} 0",
            "weft_pool_timeouts_total{pool=\"$name\"} 0",
            "weft_pool_connect_failures_total{pool=\"$name\"} 0",
            "weft_pool_refused_total{pool=\"$name\"} 0",
            "weft_pool_leaks_total{pool=\"$name\"} 0",
            "weft_pool_use_duration_seconds_count{pool=\"$name\"} 10",
            "weft_pool_create_duration_seconds_count{pool=\"$name\"} 2",
            ] as $line
        ) {
            self::assertStringContainsString("$line\n", $metrics);
        }
        foreach (['wait', 'use', 'create'] as $histogram) {
            self::assertMatchesRegularExpression("/^weft_pool_{$histogram}_duration_seconds_bucket\{pool=\"$name\",le=\"\+Inf\"\} \d+$/m", $metrics);
        }
    }
}
