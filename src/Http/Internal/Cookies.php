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
            [$name, $value] = \explode('=', $pair, 2) + [1 => null];
            $name = \trim($name);
            if ($value !== null && $name !== '') {
                $cookies[$name] ??= \rawurldecode(\trim($value, " \t\""));
            }
        }

        return $cookies;
    }
}
