<?php

declare(strict_types=1);

namespace Weft\Tests\Workers;

use PHPUnit\Framework\TestCase;
use Weft\Workers\Internal\BlockedLoop;

/** The stack of a worker whose event loop is blocked. */
final class BlockedLoopTest extends TestCase
{
    public function testCallsOfWeftAreCounted(): void
    {
        $library = \dirname(__DIR__, 2) . '/src';

        self::assertSame(
            "#0 usleep()\n#1 App\\Report::build() at /srv/app/src/Report.php:17\n#4 main script\n… 2 frames of Weft",
            self::stack(['usleep()', 'App\Report::build() at /srv/app/src/Report.php:17', 'Weft\Native\Realm::untilExit()', "Weft\\App::run() at $library/App.php:12", 'main script']),
        );
    }

    public function testAStackOfWeftAloneIsShown(): void
    {
        $call = 'Weft\App::run() at ' . \dirname(__DIR__, 2) . '/src/App.php:12';

        self::assertSame("#0 $call", self::stack([$call]));
        self::assertSame('no trace could be read', self::stack([]));
    }

    /** @param list<string> $trace */
    private static function stack(array $trace): string
    {
        return BlockedLoop::of(['seconds' => 0.2, 'trace' => $trace])->context()['stack'];
    }
}
