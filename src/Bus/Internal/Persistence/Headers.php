<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Persistence;

/**
 * Encodes headers for a column.
 *
 * @internal
 */
final class Headers
{
    /** @param array<string, string> $headers */
    public static function encode(array $headers): string
    {
        // Not as an object: PHP takes a property whose name begins with NUL for a private one, and leaves it out.
        return \json_encode($headers, \JSON_FORCE_OBJECT | \JSON_THROW_ON_ERROR | \JSON_UNESCAPED_SLASHES | \JSON_UNESCAPED_UNICODE | \JSON_INVALID_UTF8_SUBSTITUTE);
    }

    /** @return array<string, string> */
    public static function decode(string $headers): array
    {
        return \json_decode($headers, true, flags: \JSON_THROW_ON_ERROR);
    }
}
