<?php

declare(strict_types=1);

namespace Weft\Http\Internal\Handlers;

/** @internal */
final class QueryString
{
    /**
     * The values of a parameter that may occur several times, as `name=a&name=b` or `name[]=a`.
     *
     * @return list<string>
     */
    public static function all(string $query, string $name): array
    {
        $values = [];
        foreach ($query === '' ? [] : \explode('&', $query) as $pair) {
            $parts = \explode('=', $pair, 2);
            $key = \urldecode($parts[0]);
            if ($key === $name || $key === "{$name}[]") {
                $values[] = \urldecode($parts[1] ?? '');
            }
        }

        return $values;
    }
}
