<?php

declare(strict_types=1);

namespace Weft\Bridge\Internal;

/**
 * Texts as literals of SQL.
 *
 * @internal
 */
final class Literal
{
    public static function of(string $text): string
    {
        return "'" . \str_replace("'", "''", $text) . "'";
    }

    /**
     * For MySQL and MariaDB, whatever the session's `sql_mode`: whether a backslash escapes depends on `NO_BACKSLASH_ESCAPES`, so a text with one goes in
     * hexadecimal digits.
     */
    public static function ofMysql(string $text): string
    {
        return \str_contains($text, '\\') ? "_utf8mb4 X'" . \bin2hex($text) . "'" : self::of($text);
    }
}
