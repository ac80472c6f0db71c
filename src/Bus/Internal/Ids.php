<?php

declare(strict_types=1);

namespace Weft\Bus\Internal;

/**
 * Identifiers of messages, traces and spans.
 *
 * Random bytes are drawn in blocks: a system call per identifier would cost more than everything else about it.
 *
 * @internal
 */
final class Ids
{
    private const BLOCK = 512;

    private static string $hex = '';
    private static int $at = 0;
    private static int $process = 0;

    /** UUID version 7 (RFC 9562 §5.7): sorts by the millisecond it was made in. */
    public static function message(): string
    {
        $time = \str_pad(\dechex((int) (\microtime(true) * 1000)), 12, '0', \STR_PAD_LEFT);
        $random = self::hex(18);
        // The variant takes two bits: 8, 9, a or b.
        $variant = '89ab'[\hexdec($random[3]) & 3];

        return \substr($time, 0, 8) . '-' . \substr($time, 8) . '-7' . \substr($random, 0, 3) . "-{$variant}"
            . \substr($random, 4, 3) . '-' . self::hex(12);
    }

    /** 32 hex digits, never all zero (W3C Trace Context §3.2.2.3). */
    public static function trace(): string
    {
        return self::hex(31) . '1';
    }

    /** 16 hex digits, never all zero. */
    public static function span(): string
    {
        return self::hex(15) . '1';
    }

    private static function hex(int $digits): string
    {
        // A forked child must not repeat what its parent has drawn but not used.
        if (self::$at + $digits > \strlen(self::$hex) || self::$process !== \getmypid()) {
            self::$hex = \bin2hex(\random_bytes(self::BLOCK));
            self::$at = 0;
            self::$process = \getmypid();
        }
        $hex = \substr(self::$hex, self::$at, $digits);
        self::$at += $digits;

        return $hex;
    }
}
