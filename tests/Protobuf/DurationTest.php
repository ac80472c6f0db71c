<?php

declare(strict_types=1);

namespace Weft\Tests\Protobuf;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Weft\Protobuf\Json;
use Weft\Protobuf\WellKnown\Duration;

final class DurationTest extends TestCase
{
    /** @dataProvider seconds */
    #[DataProvider('seconds')]
    public function testADurationOfSecondsIsRoundedToNanoseconds(float $seconds, int $whole, int $nanos, string $json): void
    {
        $duration = Duration::ofSeconds($seconds);

        self::assertSame([$whole, $nanos, "\"{$json}\""], [$duration->seconds, $duration->nanos, Json::encode($duration)]);
    }

    /** @return iterable<string, array{float, int, int, string}> */
    public static function seconds(): iterable
    {
        yield 'a fraction' => [1.5, 1, 500_000_000, '1.500s'];
        yield 'a negative fraction' => [-0.25, 0, -250_000_000, '-0.250s'];
        yield 'rounded up to a second' => [2.9999999999, 3, 0, '3s'];
        yield 'rounded down to a negative second' => [-0.9999999999, -1, 0, '-1s'];
        yield 'the longest' => [315_576_000_000.0, 315_576_000_000, 0, '315576000000s'];
    }

    /** @dataProvider invalid */
    #[DataProvider('invalid')]
    public function testADurationBeyondItsRangeIsRefused(float $seconds, string $named): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage("A duration must have -315,576,000,000 to 315,576,000,000 seconds, got {$named}");
        Duration::ofSeconds($seconds);
    }

    /** @return iterable<string, array{float, string}> */
    public static function invalid(): iterable
    {
        yield 'infinite' => [\INF, 'INF'];
        yield 'infinite in the past' => [-\INF, '-INF'];
        yield 'not a number' => [\NAN, 'NAN'];
        yield 'beyond 10,000 years' => [-315_576_000_001.0, '-315576000001'];
        yield 'beyond an int' => [1e30, '1.0E+30'];
    }
}
