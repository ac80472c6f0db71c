<?php

declare(strict_types=1);

namespace Weft\Http\Internal\Handlers;

use Weft\Internal\Codec\MismatchException;
use Weft\Internal\Codec\Optional;
use Weft\Internal\Codec\Sequence;
use Weft\Internal\Codec\Type;

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

    /**
     * All values for a list, otherwise the last one.
     *
     * @param non-empty-list<string> $values
     *
     * @throws MismatchException
     */
    public static function decode(Type $type, array $values): mixed
    {
        $type = $type instanceof Optional ? $type->inner : $type;

        return $type instanceof Sequence
            ? \array_map(static fn(string $one): mixed => TextValue::decode($type->item, $one), $values)
            : TextValue::decode($type, $values[\array_key_last($values)]);
    }
}
