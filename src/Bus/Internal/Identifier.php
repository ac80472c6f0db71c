<?php

declare(strict_types=1);

namespace Weft\Bus\Internal;

/**
 * Fits ids and keys from messages into text columns.
 *
 * @internal
 */
final class Identifier
{
    /**
     * Unchanged if it has at most `$bytes` and is UTF-8 without NUL, which every database accepts; otherwise its SHA-256, which has 64
     * bytes.
     */
    public static function fit(string $name, int $bytes): string
    {
        return \strlen($name) <= $bytes && \preg_match('/^[^\x00]*$/Du', $name) === 1 ? $name : \hash('sha256', $name);
    }
}
