<?php

declare(strict_types=1);

namespace Weft\Tests\Harness\Fixtures;

use PHPUnit\Framework\TestCase;

final class Crashing extends TestCase
{
    public function testOneThatEndsItsProcess(): void
    {
        \posix_kill(\getmypid(), \SIGKILL);
        self::assertTrue(true);
    }
}
