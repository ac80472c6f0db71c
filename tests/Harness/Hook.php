<?php

declare(strict_types=1);

namespace Weft\Tests\Harness;

use PHPUnit\Runner\AfterSkippedTestHook;
use PHPUnit\Runner\BeforeTestHook;

/** How PHPUnit 9 calls the {@see Guard}. */
final class Hook implements BeforeTestHook, AfterSkippedTestHook
{
    public function executeBeforeTest(string $test): void
    {
        Guard::instance()->beforeTest($test);
    }

    public function executeAfterSkippedTest(string $test, string $message, float $time): void
    {
        Guard::instance()->skipped($test, $message);
    }
}
