<?php

declare(strict_types=1);

namespace Weft\Internal\Codec;

/**
 * Estimates the memory that JSON takes when PHP decodes it. `[[[…]]]` takes 108 times its size, and PHP ends the process, with all its
 * requests, if that exceeds `memory_limit`.
 *
 * @internal
 */
final class JsonMemory
{
    /** Bytes that every document may take, however small it is. */
    private const BASE = 16 * 1024 * 1024;
    /** Records take 15 to 30 times their size, at most 34 (`{"x":1,"y":2}`); with the base, documents of them pass up to 8 MiB. */
    private const FACTOR = 32;
    /** The most that valid JSON takes: `[` and `]` are two bytes, and a list takes 216. */
    private const WORST_FACTOR = 108;

    /** An array of up to 8 values: header and slots, in PHP 8.2 to 8.6 with 64 bits. */
    private const LIST_BYTES = 56 + 160;
    /** The same with keys. */
    private const OBJECT_BYTES = 56 + 320;
    /** A value of a longer array. */
    private const SLOT_BYTES = 16;
    /** A string of up to 7 bytes; the text of a longer one adds its size once. */
    private const STRING_BYTES = 32;

    /** @return int bytes that the decoded values may take */
    public static function limit(string $json): int
    {
        return self::BASE + self::FACTOR * \strlen($json);
    }

    /**
     * @return string|null what is wrong, to stand behind the name of the document; null if its values take no more than `$limit`
     */
    public static function problem(string $json, int $limit): ?string
    {
        if (\strlen($json) * self::WORST_FACTOR <= $limit) {
            return null;
        }
        $bytes = self::estimate($json);

        return $bytes <= $limit ? null : \sprintf(
            'consists of too many small lists and objects: its %.1f MiB would take %.0f MiB of memory, and may take %.0f MiB. Send it in parts',
            \strlen($json) / 1024 ** 2,
            $bytes / 1024 ** 2,
            $limit / 1024 ** 2,
        );
    }

    /** Counts those in strings as well: text has few brackets and commas for its size. */
    public static function estimate(string $json): int
    {
        $counts = \count_chars($json);
        // Empty arrays are one and the same.
        $lists = $counts[\ord('[')] - \substr_count($json, '[]');
        $objects = $counts[\ord('{')] - \substr_count($json, '{}');

        return $lists * self::LIST_BYTES
            + $objects * self::OBJECT_BYTES
            + $counts[\ord(',')] * self::SLOT_BYTES
            + \intdiv($counts[\ord('"')], 2) * self::STRING_BYTES;
    }
}
