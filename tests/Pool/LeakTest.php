<?php

declare(strict_types=1);

namespace Weft\Tests\Pool;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Pool\Holder;
use Weft\Pool\Hooks;
use Weft\Pool\Leases;
use Weft\Pool\PoolOptions;
use Weft\Tests\Pool\Support\PoolTestCase;
use Weft\Tests\Pool\Support\Server;

use function Weft\current;
use function Weft\delay;
use function Weft\run;

/** Connections that are held for too long. */
final class LeakTest extends PoolTestCase
{
    /** @dataProvider servers */
    #[DataProvider('servers')]
    public function testALeakIsToldOnceWithItsTaskStackAgeAndLastStatement(Server $server): void
    {
        run(static function () use ($server): void {
            $leaks = [];
            $db = $server->connect(self::options(0.03), new Hooks(leaked: static function (Holder $holder) use (&$leaks): void {
                $leaks[] = $holder;
            }));
            $transaction = $db->begin();
            $line = __LINE__ - 1;
            self::assertSame(7, $transaction->execute('SELECT 7 AS n')->value());
            self::eventually(static function () use (&$leaks): bool {
                return $leaks !== [];
            }, 'a report');
            delay(0.1);

            self::assertCount(1, $leaks);
            self::assertSame(['books', current()?->id(), __FILE__, $line, 'SELECT 7 AS n'], [$leaks[0]->pool, $leaks[0]->task, $leaks[0]->file, $leaks[0]->line, $leaks[0]->statement]);
            self::assertStringContainsString(__FILE__ . ":$line in ", (string) $leaks[0]->stack);
            self::assertGreaterThanOrEqual(0.03, $leaks[0]->held);
            self::assertSame(1, $db->stats()['leaks']);
            $transaction->rollback();
            $db->close();
        });
    }

    /** @dataProvider servers */
    #[DataProvider('servers')]
    public function testWithoutAListenerALeakIsAWarning(Server $server): void
    {
        $warnings = [];
        \set_error_handler(static function (int $level, string $message) use (&$warnings): bool {
            $warnings[] = $message;

            return true;
        }, \E_USER_WARNING);
        try {
            run(static function () use ($server, &$warnings): void {
                $db = $server->connect(self::options(0.03));
                $transaction = $db->begin();
                $transaction->execute('SELECT 7 AS n')->value();
                self::eventually(static function () use (&$warnings): bool {
                    return $warnings !== [];
                }, 'a warning');
                delay(0.1);
                $transaction->rollback();
                $db->close();
            });
        } finally {
            \restore_error_handler();
        }

        self::assertCount(1, $warnings);
        self::assertMatchesRegularExpression('/^pool "books": task #\d+ holds a resource for /', $warnings[0]);
        self::assertStringContainsString('last statement: SELECT 7 AS n, borrowed at', $warnings[0]);
        self::assertStringContainsString(__FILE__, $warnings[0]);
    }

    /** @dataProvider servers */
    #[DataProvider('servers')]
    public function testAListenerMayWaitAndIsHeardInEveryRun(Server $server): void
    {
        $told = 0;
        $db = $server->connect(self::options(0.03), new Hooks(leaked: static function (Holder $holder) use (&$told, &$db): void {
            $db->execute('SELECT 1');
            // That may itself take longer than the threshold.
            $told += (int) ($holder->statement === 'SELECT 7 AS n');
        }));
        foreach ([1, 2] as $runs) {
            run(static function () use ($db, $runs, &$told): void {
                $transaction = $db->begin();
                $transaction->execute('SELECT 7 AS n')->value();
                self::eventually(static function () use ($runs, &$told): bool {
                    return $told === $runs;
                }, 'a report');
                $transaction->rollback();
            });
            self::assertSame($runs, $told);
        }
        $db->close();
    }

    /** @dataProvider servers */
    #[DataProvider('servers')]
    public function testOutsideOfRunALeakIsToldBeforeTheNextStatement(Server $server): void
    {
        $leaks = [];
        $db = $server->connect(self::options(0.03), new Hooks(leaked: static function (Holder $holder) use (&$leaks): void {
            $leaks[] = [$holder->task, $holder->statement];
        }));
        $transaction = $db->begin();
        $transaction->execute('SELECT 7 AS n')->value();
        // A statement that takes longer than the threshold is itself the occasion to tell: another try.
        for ($tries = 1; $leaks !== [] && $tries < 20; $tries++) {
            $transaction->rollback();
            $leaks = [];
            $transaction = $db->begin();
            $transaction->execute('SELECT 7 AS n')->value();
        }
        delay(0.15);
        self::assertSame([], $leaks);
        $db->execute('SELECT 1');
        self::assertSame([[0, 'SELECT 7 AS n']], \array_values(\array_filter($leaks, static fn (array $leak): bool => $leak[1] !== 'SELECT 1')));
        $transaction->rollback();
        $db->close();
    }

    /** @dataProvider servers */
    #[DataProvider('servers')]
    public function testWithoutAThresholdNobodyListensAndNoStackIsKept(Server $server): void
    {
        run(static function () use ($server): void {
            $told = 0;
            $db = $server->connect(self::options(0.0), new Hooks(leaked: static function () use (&$told): void {
                $told++;
            }));
            $transaction = $db->begin();
            $transaction->execute('SELECT 7 AS n')->value();
            delay(0.15);
            self::assertNull($db->holders()[0]->stack);
            self::assertSame([0, 0], [$told, $db->stats()['leaks']]);
            $transaction->rollback();
            $db->close();
        });
    }

    private static function options(float $threshold): PoolOptions
    {
        return new PoolOptions(size: 4, leases: new Leases(leakThreshold: $threshold), name: 'books');
    }
}
