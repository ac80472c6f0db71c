<?php

declare(strict_types=1);

namespace Weft\Tests\Bridge\Psr;

use PHPUnit\Framework\TestCase;
use Psr\Clock\ClockInterface;
use Weft\Bridge\Psr\Clock;
use Weft\Bus\Internal\Clock as BusClock;

if (!\interface_exists(ClockInterface::class)) {
    // Debian 12 has no package of it.
    require __DIR__ . '/ClockInterface.php';
}

final class ClockTest extends TestCase
{
    protected function tearDown(): void
    {
        BusClock::set(null);
    }

    public function testItTellsTheTimeInItsZone(): void
    {
        $before = \microtime(true);
        $now = (new Clock(new \DateTimeZone('Asia/Tokyo')))->now();

        self::assertSame('Asia/Tokyo', $now->getTimezone()->getName());
        self::assertGreaterThanOrEqual(\round($before, 5) - 0.00001, (float) $now->format('U.u'));
        self::assertLessThanOrEqual(\microtime(true) + 0.00001, (float) $now->format('U.u'));
        self::assertSame(\date_default_timezone_get(), (new Clock())->now()->getTimezone()->getName());
    }

    public function testItIsTheClockThatATestOfTheBusSets(): void
    {
        BusClock::set(1_700_000_000.25);

        self::assertSame('2023-11-14 22:13:20.250000', (new Clock(new \DateTimeZone('UTC')))->now()->format('Y-m-d H:i:s.u'));
    }
}
