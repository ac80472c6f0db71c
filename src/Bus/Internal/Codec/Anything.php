<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Codec;

/**
 * `mixed`: null, scalars and arrays of them, as JSON has them.
 *
 * @internal
 */
final class Anything implements Type
{
    public function decode(mixed $value): mixed
    {
        return $value;
    }

    public function encode(mixed $value): mixed
    {
        return match (true) {
            \is_array($value) => $this->encodeArray($value),
            \is_string($value) => Scalar::Text->encode($value),
            \is_float($value) => Scalar::Float->encode($value),
            $value === null, \is_bool($value), \is_int($value) => $value,
            default => throw Mismatch::of($this->name(), $value),
        };
    }

    public function name(): string
    {
        return 'null, a scalar or an array of them';
    }

    private function encodeArray(array $values): array
    {
        foreach ($values as $key => $value) {
            try {
                $values[$key] = $this->encode($value);
            } catch (Mismatch $mismatch) {
                throw $mismatch->within(Mismatch::segment($key));
            }
        }

        return $values;
    }
}
