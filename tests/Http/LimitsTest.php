<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Http\BodyLimits;
use Weft\Http\HeaderLimits;
use Weft\Http\Keepalive;
use Weft\Http\Limits;
use Weft\Http\LongLivedLimits;

/** The options of a server, without one. */
final class LimitsTest extends TestCase
{
    public function testEveryLimitReachesTheExtensionUnderTheNameThatItReads(): void
    {
        $limits = new Limits(1, 2, 3, 0.4, 5.0, 6.0, new LongLivedLimits(7, 8), new HeaderLimits(9, 10_000, 11.0), new BodyLimits(12, 13.0, 14, 65_535), new Keepalive(15.0, 16.0, 17.0, 18.0, 19.0, 20.0));

        self::assertSame([
            'connections' => 1, 'inFlight' => 2, 'queue' => 3, 'clientShare' => 0.4, 'deadline' => 5.0, 'writeTimeout' => 6.0, 'longLived' => 7, 'longLivedPerConnection' => 8,
            'headerCount' => 9, 'headerBytes' => 10_000, 'headerTimeout' => 11.0, 'bodyBytes' => 12, 'bodyTimeout' => 13.0, 'minBodyRate' => 14, 'streamWindow' => 65_535,
            'idleTimeout' => 15.0, 'maxAge' => 16.0, 'ageGrace' => 17.0, 'pingInterval' => 18.0, 'pingTimeout' => 19.0, 'minPingInterval' => 20.0,
        ], $limits->native());
    }

    /** @dataProvider impossible */
    #[DataProvider('impossible')]
    public function testALimitOutOfItsBoundsIsRefusedByName(string $message, \Closure $limits): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage($message);

        $limits();
    }

    /** @return iterable<string, array{string, \Closure(): object}> */
    public static function impossible(): iterable
    {
        yield 'no connections' => ['The limit connections must be greater than 0, got 0', static fn() => new Limits(connections: 0)];
        yield 'more than everything' => ['The limit clientShare must be at most 1, got 1.5', static fn() => new Limits(clientShare: 1.5)];
        yield 'a deadline that is no number' => ['The limit deadline must be greater than 0, got NAN', static fn() => new Limits(deadline: \NAN)];
        yield 'a small header' => ['The limit header.bytes must be at least 8192, got 100', static fn() => new HeaderLimits(bytes: 100)];
        yield 'a negative rate' => ['The limit body.minRate must be greater than 0, got -1', static fn() => new BodyLimits(minRate: -1)];
        yield 'a small window' => ['The limit body.window must be from 65535 to 2147483647, got 1', static fn() => new BodyLimits(window: 1)];
        yield 'no streams' => ['The limit longLived.total must be greater than 0, got 0', static fn() => new LongLivedLimits(total: 0)];
        yield 'no idle time' => ['The limit keepalive.idle must be greater than 0, got 0', static fn() => new Keepalive(idle: 0.0)];
    }
}
