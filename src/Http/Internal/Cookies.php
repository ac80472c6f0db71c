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
}
