<?php

declare(strict_types=1);

namespace Weft\Runtime\Internal;

/**
 * The failures of a scope after its first one, kept as long as the first one exists.
 *
 * @internal
 */
final class SuppressedFailures
{
    /** @var \WeakMap<\Throwable, list<\Throwable>>|null */
    private static ?\WeakMap $byFirst = null;

    /** @param list<\Throwable> $others */
    public static function attach(\Throwable $first, array $others): void
    {
        self::$byFirst ??= new \WeakMap();
        self::$byFirst[$first] = [...self::of($first), ...$others];
    }

    /** @return list<\Throwable> in order of failure */
    public static function of(\Throwable $first): array
    {
        return self::$byFirst[$first] ?? [];
    }
}
