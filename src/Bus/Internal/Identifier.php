<?php

declare(strict_types=1);

namespace Weft\Bus\Internal;

/**
 * Names, ids and keys in text columns.
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
        return self::fits($name, $bytes) ? $name : \hash('sha256', $name);
    }

    /** Whether it has at most `$bytes` and is UTF-8 without NUL. */
    public static function fits(string $name, int $bytes): bool
    {
        return \strlen($name) <= $bytes && \preg_match('/^[^\x00]*$/Du', $name) === 1;
    }

    /**
     * @param string $of what has the name
     * @throws \ValueError unless it has 1 to `$bytes` of UTF-8 without NUL
     */
    public static function check(string $of, string $name, int $bytes): void
    {
        if ($name === '' || !self::fits($name, $bytes)) {
            throw new \ValueError("{$of} must have 1 to {$bytes} bytes of UTF-8 without NUL, got \"" . \mb_scrub($name, 'UTF-8') . '" of ' . \strlen($name));
        }
    }
}
