<?php

declare(strict_types=1);

namespace Weft\Tests\Harness\Fixtures;

use PHPUnit\Framework\TestCase;

final class Hanging extends TestCase
{
    public function testOneThatNeverEnds(): void
    {
        \sleep(600);
        self::assertTrue(true);
    }
}
