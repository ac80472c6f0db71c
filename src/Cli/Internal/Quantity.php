<?php

declare(strict_types=1);

namespace Weft\Cli\Internal;

use Symfony\Component\Console\Exception\InvalidOptionException;

/**
 * Parses options of the command line, most of them numbers. Null, for a missing option, stays null.
 *
 * @internal
 */
final class Quantity
{
    /** Less resident memory than PHP has without an application: each new worker would exceed the limit at once. */
    private const LEAST_MEMORY = 16 * 1024 ** 2;
    private const UNITS = ['' => 1, 'K' => 1024, 'M' => 1024 ** 2, 'G' => 1024 ** 3];

    /**
     * @param positive-int $most
     *
     * @return ($text is null ? null : positive-int)
     */
    public static function positive(string $option, ?string $text, int $most = \PHP_INT_MAX): ?int
    {
        if ($text === null) {
            return null;
        }
        $number = \filter_var($text, \FILTER_VALIDATE_INT, ['options' => ['min_range' => 1, 'max_range' => $most]]);
        if ($number === false) {
            throw self::refusal($option, $text, \preg_match('/^\d*[1-9]\d*$/D', $text) === 1 ? "at most $most" : 'an integer of at least 1');
        }

        /** @var positive-int */
        return $number;
    }

    /** @return ($text is null ? null : float) */
    public static function seconds(string $option, ?string $text): ?float
    {
        return $text === null ? null : self::decimal($text) ?? throw self::refusal($option, $text, 'a number of seconds, at least 0');
    }

    /**
     * A number of seconds for which 0 has no meaning.
     *
     * @return ($text is null ? null : float)
     */
    public static function duration(string $option, ?string $text, float $most = \INF): ?float
    {
        if ($text === null) {
            return null;
        }
        $seconds = self::decimal($text) ?? 0.0;

        return $seconds > 0.0 && $seconds <= $most
            ? $seconds
            : throw self::refusal($option, $text, 'a number of seconds' . ($most === \INF ? ' above 0' : ", above 0 and at most $most"));
    }

    /** @return ($text is null ? null : float) */
    public static function rate(string $option, ?string $text): ?float
    {
        if ($text === null) {
            return null;
        }

        return \is_numeric($text) && (float) $text > 0.0 ? (float) $text : throw self::refusal($option, $text, 'a number above 0');
    }

    /**
     * A limit for the resident memory of a process.
     *
     * @return ($text is null ? null : int)
     */
    public static function memory(string $option, ?string $text): ?int
    {
        if ($text === null) {
            return null;
        }
        if (\preg_match('/^([1-9]\d*)([KMG]?)$/iD', $text, $parts) !== 1) {
            throw self::refusal($option, $text, 'a number of bytes, optionally with K, M or G, such as 256M');
        }
        $number = \filter_var($parts[1], \FILTER_VALIDATE_INT);
        $bytes = $number === false ? null : $number * self::UNITS[\strtoupper($parts[2])];

        if (\is_int($bytes) && $bytes < self::LEAST_MEMORY) {
            throw self::refusal($option, $text, 'at least 16M, because PHP without an application needs more');
        }

        return \is_int($bytes) ? $bytes : throw self::refusal($option, $text, 'at most ' . \PHP_INT_MAX . ' bytes');
    }

    /** @return ($text is null ? null : non-empty-string) */
    public static function text(string $option, ?string $text): ?string
    {
        return $text === '' ? throw new InvalidOptionException("--$option is empty") : $text;
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
