<?php

declare(strict_types=1);

namespace Weft\Pool\Internal;

/**
 * Exceptions of factories, by number while they travel through the extension, which holds no PHP values.
 *
 * @internal
 */
final class Thrown
{
    /** Older ones are dropped, because no task waits for them. */
    private const MAX_KEPT = 256;

    /** @var array<int, \Throwable> */
    private static array $thrown = [];
    private static int $last = 0;

    public static function keep(\Throwable $error): int
    {
        self::$thrown[++self::$last] = $error;
        unset(self::$thrown[self::$last - self::MAX_KEPT]);

        return self::$last;
    }

    public static function by(int $number): ?\Throwable
    {
        return self::$thrown[$number] ?? null;
    }
}
