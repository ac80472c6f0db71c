<?php

declare(strict_types=1);

namespace Weft\Tests\Bench;

use PHPUnit\Framework\TestCase;
use Weft\Bench\Spread;

require_once __DIR__ . '/../../bench/autoload.php';

final class SpreadTest extends TestCase
{
    public function testTheMedianOfAnOddNumberIsTheMiddleOne(): void
    {
        self::assertSame('2.0 (1.0–9.0)', Spread::of([9, 1, 2])->format(1));
    }

    public function testTheMedianOfAnEvenNumberLiesBetweenTheTwoInTheMiddle(): void
    {
        self::assertSame(2.5, Spread::of([4, 1, 2, 3])->median);
    }

    public function testASpreadThatRoundsToOneNumberIsPrintedAsOne(): void
    {
        self::assertSame('1,200', Spread::of([1200.1, 1200.2])->format(0));
    }
}
