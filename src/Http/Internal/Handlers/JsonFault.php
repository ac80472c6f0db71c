<?php

declare(strict_types=1);

namespace Weft\Http\Internal\Handlers;

/**
 * Finds the value that json_encode() refuses, which says only that there is one.
 *
 * @internal
 */
final class JsonFault
{
    private const MAX_DEPTH = 64;

    /** The exception with the place of the value: `$.people[3].name`. */
    public static function located(\JsonException $fault, mixed $data): \JsonException
    {
        try {
            return new \JsonException("{$fault->getMessage()}, at " . self::place($data, '$', 0), (int) $fault->getCode(), $fault);
        } catch (\Throwable) {
            // A jsonSerialize() that does not like to be called again.
            return $fault;
        }
    }

    private static function place(mixed $value, string $path, int $depth): string
    {
        while ($value instanceof \JsonSerializable && $depth < self::MAX_DEPTH) {
            $serialized = $value->jsonSerialize();
            if ($serialized === $value) {
                // It is encoded by its properties.
                break;
            }
            $value = $serialized;
            $depth++;
        }
        if ($depth === self::MAX_DEPTH || !\is_array($value) && !\is_object($value)) {
            return $path;
        }
        $isList = \is_array($value) && \array_is_list($value);
        foreach (\is_object($value) ? \get_object_vars($value) : $value as $key => $item) {
            if (\json_encode((string) $key) === false) {
                return "a key of $path";
            }
            if (\json_encode($item) === false) {
                return self::place($item, $isList ? "{$path}[$key]" : "$path.$key", $depth + 1);
            }
        }

        return $path;
    }
}
