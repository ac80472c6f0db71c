<?php

declare(strict_types=1);

namespace Weft\Tests\Harness\Fixtures;

use PHPUnit\Framework\TestCase;

/** What all of it needs is missing. */
final class Missing extends TestCase
{
    public static function setUpBeforeClass(): void
    {
        self::markTestSkipped('their tool is missing');
    }

    public function testOne(): void
    {
        self::fail('It is skipped.');
    }

    public function testAnother(): void
    {
        self::fail('It is skipped.');
    }
}
