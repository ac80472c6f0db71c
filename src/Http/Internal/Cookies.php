<?php

declare(strict_types=1);

namespace Weft\Http\Internal;

/** @internal */
final class Cookies
{
    /** @return array<string, string> */
    public static function parse(string $header): array
    {
        $cookies = [];
        foreach (\explode(';', $header) as $pair) {
            $parts = \explode('=', $pair, 2);
            $name = \trim($parts[0]);
            $value = $parts[1] ?? null;
            if ($value !== null && $name !== '') {
                $cookies[$name] ??= \rawurldecode(\trim($value, " \t\""));
            }
        }

        return $cookies;
    }

    /**
     * As PHP fills `$_COOKIE`: names become those of variables (`a[b]` an array, `a.b` `a_b`), a value keeps its quotes, and one without `=` is empty.
     *
     * @return array<array-key, mixed>
     */
    public static function ofPhp(string $header): array
    {
        $pairs = $seen = [];
        foreach (\explode(';', $header, 1 + (int) \ini_get('max_input_vars')) as $pair) {
            $parts = \explode('=', \ltrim($pair), 2);
            $name = $parts[0];
            if ($name === '') {
                continue;
            }
            $variable = self::variable($name);
            // The first one of several counts. Elements of an array are several.
            if ($variable !== null && (!isset($seen[$variable]) || \str_contains($name, '['))) {
                $seen[$variable] = true;
                $pairs[] = \rawurlencode($name) . '=' . \rawurlencode(\rawurldecode($parts[1] ?? ''));
            }
        }
        $cookies = [];
        \parse_str(\implode('&', $pairs), $cookies);

        return $cookies;
    }

    /** Null where PHP ignores the cookie. */
    private static function variable(string $name): int|string|null
    {
        if (\strpbrk($name, ' .[') === false) {
            return $name;
        }
        $parsed = [];
        \parse_str(\rawurlencode($name), $parsed);

        return \array_key_first($parsed);
    }
}
