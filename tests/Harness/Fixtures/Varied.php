<?php

declare(strict_types=1);

namespace Weft\Tests\Harness\Fixtures;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

final class Varied extends TestCase
{
    /** @dataProvider halves */
    #[DataProvider('halves')]
    public function testOneOfTwo(bool $holds): void
    {
        self::assertTrue($holds, 'the second does not hold');
    }

    public function testOneThatIsSkipped(): void
    {
        self::markTestSkipped('its tool is missing');
    }

    public static function halves(): iterable
    {
        yield 'first' => [true];
        yield 'second' => [false];
    }
}
