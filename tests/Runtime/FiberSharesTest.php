<?php

declare(strict_types=1);

namespace Weft\Tests\Runtime;

use PHPUnit\Framework\TestCase;
use Weft\Runtime\Internal\FiberShares;

final class FiberSharesTest extends TestCase
{
    public function testServersTogetherGetNoMoreFibersThanThereAre(): void
    {
        $shares = new FiberShares(100);
        $http = $grpc = 0;
        $shares->claim(60, static function (int $fibers) use (&$http): void {
            $http = $fibers;
        });
        self::assertSame(60, $http);

        $second = $shares->claim(140, static function (int $fibers) use (&$grpc): void {
            $grpc = $fibers;
        });
        self::assertSame([30, 70], [$http, $grpc]);

        $shares->shrink(50);
        self::assertSame([15, 35], [$http, $grpc]);

        $shares->release($second);
        self::assertSame(50, $http);
    }

    public function testEveryServerGetsOne(): void
    {
        $shares = new FiberShares(2);
        $parts = [];
        foreach ([1, \PHP_INT_MAX] as $index => $handlers) {
            $shares->claim($handlers, static function (int $fibers) use (&$parts, $index): void {
                $parts[$index] = $fibers;
            });
        }

        self::assertSame([1, 2], $parts);
    }
}
