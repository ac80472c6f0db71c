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
     * The values of a parameter that may occur several times, as `name=a&name=b`, or `name[]=a` and `name[0]=a` for a list.
     *
     * @return list<string>
     *
     * @throws MismatchException `name[]=a`, and the type is no list
     */
    public static function all(string $query, string $name, Type $type): array
    {
        // A parameter is never null, only missing.
        $type = $type instanceof Optional ? $type->inner : $type;
        $values = [];
        foreach ($query === '' ? [] : \explode('&', $query) as $pair) {
            $end = \strpos($pair, '=');
            $key = $end === false ? $pair : \substr($pair, 0, $end);
            if ($key !== $name) {
                // Most names are written as they are, and need no decoding to be another one.
                if (\strpbrk($key, '%+[') === false) {
                    continue;
                }
                $key = \urldecode($key);
                if ($key !== $name && !(\str_starts_with($key, $name) && \preg_match('/^\[\d*\]$/D', \substr($key, \strlen($name))) === 1)) {
                    continue;
                }
                if ($key !== $name && !$type instanceof Sequence) {
                    throw MismatchException::described($type->name(), 'list');
                }
            }
            $values[] = $end === false ? '' : \urldecode(\substr($pair, $end + 1));
        }

        return $values;
    }

    /** The type of each of its values. */
    public static function item(Type $type): Type
    {
        $type = $type instanceof Optional ? $type->inner : $type;

        return $type instanceof Sequence ? $type->item : $type;
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
