<?php

declare(strict_types=1);

namespace Weft\Tests\Bridge\Laravel;

use Illuminate\Foundation\Application;
use PHPUnit\Framework\Attributes\PreCondition;

/** Skips the tests of a class where a release has no package of Laravel. */
trait RequiresLaravel
{
    /** @preCondition */
    #[PreCondition]
    protected function requireLaravel(): void
    {
        \class_exists(Application::class) || self::markTestSkipped('Laravel is not installed (Debian: php-laravel-framework)');
    }
}
