<?php

declare(strict_types=1);

namespace Weft\Tests\Harness\Fixtures;

use PHPUnit\Framework\TestCase;

final class Untidy extends TestCase
{
    public function testOneThatLeavesAProcessAndAFile(): void
    {
        \touch(\sys_get_temp_dir() . '/left-behind');
        \exec('sleep 600 >/dev/null 2>&1 &');
        self::assertTrue(true);
    }
}
