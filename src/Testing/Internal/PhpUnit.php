<?php

declare(strict_types=1);

namespace Weft\Testing\Internal;

use PHPUnit\Framework\Assert;
use Weft\UsageError;

/**
 * The library whose assertions the test kit uses.
 *
 * @internal
 */
final class PhpUnit
{
    private function __construct() {}

    /** @throws UsageError it is not installed */
    public static function require(): void
    {
        \class_exists(Assert::class) || throw new UsageError('Weft\Testing needs PHPUnit, which is not installed or not loaded: composer require --dev phpunit/phpunit');
    }
}
