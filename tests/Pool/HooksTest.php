<?php

declare(strict_types=1);

namespace Weft\Tests\Pool;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Pool\Hooks;
use Weft\Pool\PoolOptions;
use Weft\Pool\Timeouts;
use Weft\Sql\Database;
use Weft\Sql\HookException;
use Weft\Sql\Session;
use Weft\UsageError;
use Weft\Tests\Pool\Support\PoolTestCase;
use Weft\Tests\Pool\Support\Server;
use Weft\Tests\Sql\Support\MysqlProduct;

use function Weft\all;
use function Weft\delay;
use function Weft\run;
use function Weft\timeout;

/** Hooks of a database. Those of a Pool are in {@see PoolTest}. */
final class HooksTest extends PoolTestCase
{
    /** @var list<string> */
    private array $log = [];

    /** @dataProvider servers */
    #[DataProvider('servers')]
    public function testHooksAreCalledInTheOrderOfAConnectionsLife(Server $server): void
    {
        run(function () use ($server): void {
            $db = $server->connect(new PoolOptions(size: 1), $this->notes());
            $session = $server->session($db);
            $db->execute('SELECT 1');
            $db->close();
            self::assertSame(["created $session", "borrowed $session", "returned $session", "borrowed $session", "returned $session", "closed $session"], $this->log);
        });
    }

    /** @dataProvider servers */
    #[DataProvider('servers')]
    public function testClosingWaitsForTheHooksOfItsConnections(Server $server): void
    {
        run(static function () use ($server): void {
            $ended = 0;
            $db = $server->connect(new PoolOptions(size: 2), new Hooks(closed: static function () use (&$ended): void {
                delay(0.05);
                ++$ended;
            }));
            all([static fn () => $db->execute('SELECT 1'), static fn () => $db->execute('SELECT 1')]);
            $db->close();
            self::assertSame($db->stats()['created'], $ended);
        });
    }

    /** @dataProvider servers */
    #[DataProvider('servers')]
    public function testTheyAreCalledOutsideOfTasksToo(Server $server): void
    {
        $db = $server->connect(new PoolOptions(size: 1), $this->notes());
        $session = $server->session($db);
        $db->execute('SELECT 1');
        $db->close();
        self::assertSame(["created $session", "borrowed $session", "returned $session", "borrowed $session", "returned $session", "closed $session"], $this->log);
    }

    /** @dataProvider servers */
    #[DataProvider('servers')]
    public function testATransactionBorrowsOnce(Server $server): void
    {
        run(function () use ($server): void {
            $db = $server->connect(new PoolOptions(size: 1), $this->notes());
            $db->transaction(static function ($tx): void {
                $tx->execute('SELECT 1')->rows();
                $tx->execute('SELECT 2')->rows();
            });
            \iterator_to_array($db->stream('SELECT 3'));
            $db->close();
            self::assertSame(['created', 'borrowed', 'returned', 'borrowed', 'returned', 'closed'], \array_map(static fn (string $entry): string => \explode(' ', $entry)[0], $this->log));
        });
    }

    /** @dataProvider servers */
    #[DataProvider('servers')]
    public function testSettingsOfTheCreatedHookHoldForEveryBorrowerAndSettingsOfABorrowerOnlyForIt(Server $server): void
    {
        [$set, $show] = self::setting($server);
        $created = 0;
        run(function () use ($server, $set, $show, &$created): void {
            $db = $server->connect(new PoolOptions(size: 1), new Hooks(created: static function (Session $session) use ($set, &$created): void {
                $session->execute(\sprintf($set, 41));
                $created++;
            }));
            self::assertEquals(41, $db->execute($show)->value());
            self::assertSame(1, $created, 'what the hook has set is no dirt');
            $db->execute(\sprintf($set, 42));
            self::assertEquals(41, $db->execute($show)->value(), 'cleaning has undone what a borrower had set, not what the hook had');
            self::assertSame(2, $created);
            self::assertSame(1, $db->stats()['created']);
            $db->close();

            $tenant = 7;
            $db = $server->connect(new PoolOptions(size: 1), new Hooks(borrowed: static function (Session $session) use ($set, &$tenant): void {
                $session->execute(\sprintf($set, $tenant++));
            }));
            self::assertEquals([7, 8], [$db->execute($show)->value(), $db->execute($show)->value()]);
            self::assertSame(1, $db->stats()['created']);
            $db->close();
        });
    }

    /** @dataProvider servers */
    #[DataProvider('servers')]
    public function testAWaiterTakesWhatComesBackWhileTheHookOfItsOwnStillRuns(Server $server): void
    {
        run(function () use ($server): void {
            $opening = false;
            $db = $server->connect(new PoolOptions(size: 2), new Hooks(created: static function () use (&$opening): void {
                while ($opening) {
                    delay(0.01);
                }
            }));
            $db->execute('SELECT 1');
            $opening = true;
            // The second connection is never ready.
            [, $value] = timeout(60.0, static fn () => all([
                static fn () => $db->execute($server->sleepSql, [0.05])->rows(),
                static fn () => $db->execute('SELECT 2')->value(),
            ]));
            $opening = false;
            self::assertSame(2, $value);
            $db->close();
        });
    }

    /** @dataProvider servers */
    #[DataProvider('servers')]
    public function testAHookThatThrowsEndsTheConnectionAndTheBorrowerIsToldWhy(Server $server): void
    {
        foreach (['created', 'borrowed'] as $moment) {
            run(function () use ($server, $moment): void {
                $reason = new \LogicException('not today');
                $fails = true;
                $db = $server->connect(new PoolOptions(size: 1), new Hooks(...[$moment => static function () use (&$fails, $reason): void {
                    if ($fails) {
                        throw $reason;
                    }
                }]));
                [$thrown] = self::outcome(static fn () => $db->execute('SELECT 1'));
                self::assertInstanceOf(HookException::class, $thrown);
                self::assertSame($reason, $thrown->getPrevious());
                self::assertStringContainsString("the hook \"$moment\" threw LogicException: not today", $thrown->getMessage());
                self::assertSame(0, $db->stats()['in_use']);
                $fails = false;
                self::eventually(static fn (): bool => self::outcome(static fn () => $db->execute('SELECT 1'))[0] === null, 'the database is of use again');
                self::assertSame(1, $db->execute('SELECT 1')->value());
                self::eventually(static fn (): bool => $server->sessions() === 1, 'the other connection is closed on the server too');
                $db->close();
            });
        }
    }

    /** @dataProvider servers */
    #[DataProvider('servers')]
    public function testAHookThatThrowsWhereNobodyWaitsIsAWarning(Server $server): void
    {
        $warnings = [];
        \set_error_handler(static function (int $level, string $message) use (&$warnings): bool {
            $warnings[] = $message;

            return true;
        }, \E_USER_WARNING);
        try {
            run(static function () use ($server): void {
                $db = $server->connect(new PoolOptions(size: 1, name: 'books'), new Hooks(returned: static fn () => throw new \LogicException('not today')));
                $first = $server->session($db);
                self::assertNotSame($first, $server->session($db));
                $db->close();
            });
        } finally {
            \restore_error_handler();
        }
        self::assertSame(['pool "books": the hook "returned" threw LogicException: not today; the connection is closed'], \array_unique($warnings));
    }

    /** @dataProvider servers */
    #[DataProvider('servers')]
    public function testAHookThatNeverEndsCostsTheTimeThatWasSetAndIsCancelled(Server $server): void
    {
        foreach (['created' => new PoolOptions(size: 1, timeouts: new Timeouts(create: 0.1, borrow: 0.3)), 'borrowed' => new PoolOptions(size: 1, timeouts: new Timeouts(borrow: 0.1))] as $moment => $options) {
            run(function () use ($server, $moment, $options): void {
                $ended = 0;
                $db = $server->connect($options, new Hooks(...[$moment => static function () use (&$ended): void {
                    try {
                        delay(60.0);
                    } finally {
                        $ended++;
                    }
                }]));
                // Connecting alone may take that long on a busy machine; the hook runs in a later attempt then.
                self::eventually(static function () use (&$ended, $db): bool {
                    [$thrown, $seconds] = self::outcome(static fn () => $db->execute('SELECT 1'));
                    self::assertInstanceOf(\Weft\Sql\SqlException::class, $thrown);
                    self::assertLessThan(20.0, $seconds, 'the hook did not go on to its end');

                    return $ended > 0;
                }, 'the hook is cancelled');
                self::eventually(static fn (): bool => $db->stats()['in_use'] === 0, 'the room is free');
                $db->close();
            });
        }
    }

    /** @dataProvider servers */
    #[DataProvider('servers')]
    public function testABorrowerCancelledWhileItsHookRunsLeavesThePoolWhole(Server $server): void
    {
        run(static function () use ($server): void {
            $waits = false;
            $db = $server->connect(new PoolOptions(size: 1), new Hooks(borrowed: static function () use (&$waits): void {
                delay($waits ? 60.0 : 0.0);
            }));
            $db->execute('SELECT 1');
            $waits = true;
            [$thrown] = self::outcome(static fn () => \Weft\timeout(0.1, static fn () => $db->execute('SELECT 1')));
            self::assertInstanceOf(\Weft\Runtime\TimeoutException::class, $thrown);
            $waits = false;
            self::assertSame(1, $db->execute('SELECT 1')->value());
            $db->close();
        });
    }

    /** @dataProvider servers */
    #[DataProvider('servers')]
    public function testASessionIsOfNoUseWhenItsHookHasReturnedOrItsConnectionIsClosed(Server $server): void
    {
        run(static function () use ($server): void {
            $sessions = [];
            $keep = static function (Session $session) use (&$sessions): void {
                $sessions[] = $session;
            };
            $db = $server->connect(new PoolOptions(size: 1), new Hooks(created: $keep, closed: $keep));
            $db->execute('SELECT 1');
            $db->close();
            self::assertCount(2, $sessions);
            foreach ($sessions as $session) {
                self::assertInstanceOf(UsageError::class, self::outcome(static fn () => $session->execute('SELECT 1'))[0]);
            }
        });
    }

    /** @dataProvider servers */
    #[DataProvider('servers')]
    public function testAHookThatLeavesAStatementUnfinishedEndsTheConnection(Server $server): void
    {
        run(static function () use ($server): void {
            $db = $server->connect(new PoolOptions(size: 1), new Hooks(created: static function (Session $session) use ($server): void {
                try {
                    \Weft\timeout(0.05, static fn () => $session->execute($server->sleepSql, [30])->rows());
                } catch (\Weft\Runtime\TimeoutException) {
                    // Goes on as if nothing were the matter.
                }
            }));
            [$thrown, $seconds] = self::outcome(static fn () => $db->execute('SELECT 1'));
            self::assertInstanceOf(HookException::class, $thrown);
            self::assertStringContainsString('unfinished', $thrown->getMessage());
            self::assertLessThan(20.0, $seconds);
            $db->close();
        });
    }

    public function testSqliteHasNoPoolAndSoNoHooks(): void
    {
        [$thrown] = self::outcome(static fn () => Database::connect('sqlite::memory:', new PoolOptions(), new Hooks(created: static fn () => null)));
        self::assertInstanceOf(UsageError::class, $thrown);
        self::assertStringContainsString('created', $thrown->getMessage());
    }

    private function notes(): Hooks
    {
        $note = fn (string $moment): \Closure => function (Session $session) use ($moment): void {
            $this->log[] = "$moment {$session->id}";
        };

        return new Hooks($note('created'), $note('borrowed'), $note('returned'), $note('closed'));
    }

    /** @return array{string, string} how a setting is made, and how it is seen */
    private static function setting(Server $server): array
    {
        if ($server->sessionSql !== 'SELECT CONNECTION_ID()') {
            return ['SET lock_timeout = %d', "SELECT setting::int FROM pg_settings WHERE name = 'lock_timeout'"];
        }
        $schema = MysqlProduct::ofServer() === MysqlProduct::MariaDb ? 'information_schema' : 'performance_schema';

        return ['SET SESSION lock_wait_timeout = %d', "SELECT variable_value FROM {$schema}.session_variables WHERE variable_name = 'lock_wait_timeout'"];
    }
}
