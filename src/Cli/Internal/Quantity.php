<?php

declare(strict_types=1);

namespace Weft\Cli\Internal;

use Symfony\Component\Console\Exception\InvalidOptionException;

/**
 * Parses numbers of the command line. Null, for a missing option, stays null.
 *
 * @internal
 */
final class Quantity
{
    private const UNITS = ['' => 1, 'K' => 1024, 'M' => 1024 ** 2, 'G' => 1024 ** 3];

    /** @return ($text is null ? null : int) */
    public static function positive(string $option, ?string $text): ?int
    {
        if ($text === null) {
            return null;
        }
        $number = \filter_var($text, \FILTER_VALIDATE_INT, ['options' => ['min_range' => 1]]);

        return $number === false ? throw self::refusal($option, $text, 'an integer of at least 1') : $number;
    }

    /** @return ($text is null ? null : float) */
    public static function seconds(string $option, ?string $text): ?float
    {
        return $text === null ? null : self::decimal($text) ?? throw self::refusal($option, $text, 'a number of seconds, at least 0');
    }

    /** @return ($text is null ? null : float) */
    public static function duration(string $option, ?string $text): ?float
    {
        if ($text === null) {
            return null;
        }
        $seconds = self::decimal($text) ?? 0.0;

        return $seconds > 0.0 ? $seconds : throw self::refusal($option, $text, 'a number of seconds, above 0');
    }

    /** @return ($text is null ? null : int) */
    public static function bytes(string $option, ?string $text): ?int
    {
        if ($text === null) {
            return null;
        }
        if (\preg_match('/^([1-9]\d{0,9})([KMG]?)$/i', $text, $parts) !== 1) {
            throw self::refusal($option, $text, 'a number of bytes, optionally with K, M or G, such as 256M');
        }

        return (int) $parts[1] * self::UNITS[\strtoupper($parts[2])];
    }

    private static function decimal(string $text): ?float
    {
        return \preg_match('/^\d+(\.\d+)?$/D', $text) === 1 ? (float) $text : null;
    }

    private static function refusal(string $option, string $text, string $wanted): InvalidOptionException
    {
        return new InvalidOptionException("--$option is \"$text\": it must be $wanted");
    }
}
