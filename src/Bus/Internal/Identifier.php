<?php

declare(strict_types=1);

namespace Weft\Bus\Internal;

/**
 * Ids and keys that come from messages, as a column of text takes them.
 *
 * @internal
 */
final class Identifier
{
    /**
     * As it is, where it is no longer than `$bytes` and a text that every database takes: UTF-8 without NUL. Its SHA-256 elsewhere,
     * which has 64 bytes.
     */
    public static function fit(string $name, int $bytes): string
    {
        return \strlen($name) <= $bytes && \preg_match('/^[^\x00]*$/Du', $name) === 1 ? $name : \hash('sha256', $name);
    }
}
