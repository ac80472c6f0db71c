<?php

declare(strict_types=1);

namespace Weft\Bench\State;

use function Weft\delay;

/** What a request sets for itself, and the points at which it waits, while others run, and looks whether it is still there. */
final class Points
{
    private const COUNT = 5;

    /** Microseconds of a wait, at most. */
    private const LONGEST_WAIT = 2_000;

    private const LOCALES = ['de', 'fr', 'en', 'it'];

    private const ZONES = ['Asia/Tokyo', 'Europe/Vienna', 'America/Lima'];

    /** @return array{identity: string, 'request id': string, locale: string, 'time zone': string, session: string, superglobals: string, headers: string} */
    public static function expected(int $number, string $user): array
    {
        return [
            'identity' => $user,
            'request id' => "r$number",
            'locale' => self::LOCALES[$number % 4],
            'time zone' => self::ZONES[$number % 3],
            'session' => $user,
            'superglobals' => (string) $number,
            'headers' => "X-State: $number",
        ];
    }

    /**
     * @param array<string, string> $expected
     * @param \Closure(): array<string, string> $seen the same keys: what the services of the framework and PHP say now
     * @param \Closure(): array<string, string> $database what is wrong with its transaction and entities now
     *
     * @return array<string, string> by what is another's
     */
    public static function mismatches(array $expected, \Closure $seen, \Closure $database): array
    {
        $mismatches = [];
        for ($point = 1; $point <= self::COUNT; $point++) {
            delay(\mt_rand(0, self::LONGEST_WAIT) / 1e6);
            $now = $seen();
            foreach ($expected as $what => $value) {
                if ($now[$what] !== $value) {
                    $mismatches[$what] ??= "at point $point: \"{$now[$what]}\" instead of \"$value\"";
                }
            }
            foreach ($database() as $what => $wrong) {
                $mismatches[$what] ??= "at point $point: $wrong";
            }
        }

        return $mismatches;
    }

    /** The header fields that the request has set, as PHP has them now. */
    public static function headers(): string
    {
        return \implode(', ', \array_filter(\headers_list(), static fn(string $line): bool => \str_starts_with($line, 'X-State:')));
    }
}
