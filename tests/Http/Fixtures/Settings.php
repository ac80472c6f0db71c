<?php

declare(strict_types=1);

namespace Weft\Tests\Http\Fixtures;

/** Static properties as those of frameworks. */
final class Settings
{
    public static string $value = '';
    public static object $typed;
    public static object $object;
}
