<?php

declare(strict_types=1);

namespace Weft\Tests\Bridge\Laravel;

use PHPUnit\Framework\Attributes\PreCondition;

/** Skips the tests of a class where a release has no package of Laravel. */
trait RequiresLaravel
{
    /** @preCondition */
    #[PreCondition]
    protected function requireLaravel(): void
    {
        // Some of the tests load it in other processes only.
        if (!\is_file(\dirname(__DIR__, 3) . '/vendor/autoload.php') && !\is_file('/usr/share/php/Illuminate/autoload.php')) {
            self::markTestSkipped('Laravel is not installed (Debian: php-laravel-framework)');
        }
    }
}
