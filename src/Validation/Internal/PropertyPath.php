<?php

declare(strict_types=1);

namespace Weft\Validation\Internal;

/**
 * The path of a {@see \Weft\Validation\Violation}, such as `items[2].price`.
 *
 * @internal
 */
final class PropertyPath
{
    /**
     * Brackets hold a whole key, which may contain dots and brackets itself: its end is the bracket behind which the path ends or goes on.
     *
     * @return list<string> names of properties and keys
     */
    public static function segments(string $path): array
    {
        \preg_match_all('/\[(.*?)\](?=$|[.\[])|([^.\[]+)/sD', $path, $found, \PREG_SET_ORDER);

        return \array_map(static fn(array $segment): string => $segment[2] ?? $segment[1], $found);
    }
}
