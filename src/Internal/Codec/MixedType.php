<?php

declare(strict_types=1);

namespace Weft\Internal\Codec;

/**
 * `mixed`: null, scalars and arrays of these, as in JSON.
 *
 * @internal
 */
final class MixedType implements Type
{
    /** The depth that json_decode() accepts. */
    private const MAX_DEPTH = 512;

    public function decode(mixed $value): mixed
    {
        return $value;
    }

    public function encode(mixed $value): mixed
    {
        return $this->encodeAt(0, $value);
    }

    private function encodeAt(int $depth, mixed $value): mixed
    {
        return match (true) {
            \is_array($value) => $this->encodeArray($depth + 1, $value),
            \is_string($value) => Scalar::Text->encode($value),
            \is_float($value) => Scalar::Float->encode($value),
            $value === null, \is_bool($value), \is_int($value) => $value,
            default => throw MismatchException::of($this->name(), $value),
        };
    }

    public function schema(): string|array
    {
        return 'mixed';
    }

    public function name(): string
    {
        return 'null, a scalar or an array of them';
    }

    private function encodeArray(int $depth, array $values): array
    {
        if ($depth > self::MAX_DEPTH) {
            throw MismatchException::described('arrays nested at most ' . self::MAX_DEPTH . ' deep', 'more (a cycle?)');
        }
        // Not in place: an element may be a reference, and writing to it would change the message.
        $encoded = [];
        foreach ($values as $key => $value) {
            try {
                $encoded[$key] = $this->encodeAt($depth, $value);
            } catch (MismatchException $mismatch) {
                throw $mismatch->within(MismatchException::segment($key));
            }
        }

        return $encoded;
    }
}
