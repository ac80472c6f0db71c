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
            [$name, $value] = \explode('=', \ltrim($pair), 2) + [1 => ''];
            if ($name === '') {
                continue;
            }
            $encoded = \rawurlencode($name);
            $variable = $name;
            if (\strpbrk($name, ' .[') !== false) {
                \parse_str($encoded, $parsed);
                $variable = \array_key_first($parsed);
            }
            // The first one of several counts. Elements of an array are several.
            if ($variable !== null && (!isset($seen[$variable]) || \strpos($name, '[') > 0)) {
                $seen[$variable] = true;
                $pairs[] = $encoded . '=' . \rawurlencode(\rawurldecode($value));
            }
        }
        \parse_str(\implode('&', $pairs), $cookies);

        return $cookies;
    }
}
