<?php

declare(strict_types=1);

namespace Weft\Internal\Codec;

/**
 * Finds the value that json_encode() refused.
 *
 * @internal
 */
final class JsonError
{
    /**
     * @param mixed $encoded objects of classes as arrays, maps as stdClass
     * @throws MismatchException at the first offending value
     */
    public static function of(mixed $encoded): void
    {
        match (true) {
            \is_array($encoded) => self::each($encoded, static fn(int|string $key): string => \is_int($key) ? "[{$key}]" : ".{$key}"),
            \is_object($encoded) => self::each((array) $encoded, MismatchException::segment(...)),
            \is_string($encoded) => Scalar::Text->encode($encoded),
            \is_float($encoded) => Scalar::Float->encode($encoded),
            default => null,
        };
    }

    private static function each(array $values, \Closure $segment): void
    {
        foreach ($values as $key => $value) {
            try {
                \is_string($key) && Scalar::Text->encode($key);
                self::of($value);
            } catch (MismatchException $mismatch) {
                throw $mismatch->within($segment($key));
            }
        }
    }
}
