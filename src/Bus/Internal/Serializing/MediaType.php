<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Serializing;

/**
 * Media types (RFC 9110 §8.3.1) of message bodies.
 *
 * @internal
 */
final class MediaType
{
    /** In lower case and without parameters. */
    public static function of(string $contentType): string
    {
        return \strtolower(\trim(\explode(';', $contentType, 2)[0]));
    }

    /** Whether it is JSON, or based on it (RFC 6839 §3.1). */
    public static function isJson(string $contentType): bool
    {
        $type = self::of($contentType);

        return \str_ends_with($type, '/json') || \str_ends_with($type, '+json');
    }
}
