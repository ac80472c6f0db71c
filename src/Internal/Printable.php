<?php

declare(strict_types=1);

namespace Weft\Internal;

/**
 * Escapes untrusted text for logs and terminals: control characters that could move the cursor, start an escape sequence or reorder
 * the text, and bytes that are not UTF-8, become `\x1B` or `\u{202E}`.
 *
 * @internal
 */
final class Printable
{
    /** C0 without tab and newline, DEL, C1, marks and overrides of direction (UAX #9), line and paragraph separators. */
    public const CONTROLS = '/[\x{00}-\x{08}\x{0B}-\x{1F}\x{7F}-\x{9F}\x{061C}\x{200E}\x{200F}\x{2028}-\x{202E}\x{2066}-\x{2069}]/u';

    /** The same with tab and newline. */
    private const LINE_CONTROLS = '/[\x{00}-\x{1F}\x{7F}-\x{9F}\x{061C}\x{200E}\x{200F}\x{2028}-\x{202E}\x{2066}-\x{2069}]/u';

    /** Runs of well-formed UTF-8 (Unicode §3.9, table 3-7), or one byte that belongs to none. */
    private const UTF8_OR_BYTE = '/((?:[\x00-\x7F]|[\xC2-\xDF][\x80-\xBF]|\xE0[\xA0-\xBF][\x80-\xBF]|[\xE1-\xEC\xEE\xEF][\x80-\xBF]{2}|\xED[\x80-\x9F][\x80-\xBF]'
        . '|\xF0[\x90-\xBF][\x80-\xBF]{2}|[\xF1-\xF3][\x80-\xBF]{3}|\xF4[\x80-\x8F][\x80-\xBF]{2})++)|(.)/s';

    /** Tabs and newlines stay. */
    public static function text(string $text): string
    {
        return self::escaped(self::CONTROLS, $text);
    }

    /** On one line: newlines become `\n`, tabs `\t`. */
    public static function line(string $text): string
    {
        return self::escaped(self::LINE_CONTROLS, $text);
    }

    /** Truncates the text at a character boundary and appends the original length. */
    public static function cut(string $text, int $bytes): string
    {
        if (\strlen($text) <= $bytes) {
            return $text;
        }
        $start = (string) \preg_replace('/[\xC0-\xFF][\x80-\xBF]{0,2}$/D', '', \substr($text, 0, $bytes));

        return $start . '… (' . \strlen($text) . ' bytes)';
    }

    private static function escaped(string $controls, string $text): string
    {
        if (\preg_match('//u', $text) !== 1) {
            $text = (string) \preg_replace_callback(self::UTF8_OR_BYTE, static fn(array $found): string => isset($found[2]) ? self::byte($found[2]) : $found[1], $text);
        }

        return (string) \preg_replace_callback($controls, static fn(array $found): string => self::character($found[0]), $text);
    }

    private static function character(string $character): string
    {
        return match (true) {
            $character === "\n" => '\n',
            $character === "\r" => '\r',
            $character === "\t" => '\t',
            \strlen($character) === 1 => self::byte($character),
            // Its code point, from the four hexadecimal digits of JSON.
            default => '\u{' . \strtoupper(\substr((string) \json_encode($character), 3, 4)) . '}',
        };
    }

    private static function byte(string $byte): string
    {
        return \sprintf('\x%02X', \ord($byte));
    }
}
