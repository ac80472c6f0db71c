<?php

declare(strict_types=1);

namespace Weft\Internal\Codec;

/**
 * The four scalar types. A float accepts an int, as in PHP; nothing else is converted.
 *
 * @internal
 */
enum Scalar: string implements Type
{
    case Text = 'string';
    case Int = 'int';
    case Float = 'float';
    case Bool = 'bool';

    public function decode(mixed $value): mixed
    {
        return match (true) {
            $this === self::Text && \is_string($value),
            $this === self::Int && \is_int($value),
            $this === self::Bool && \is_bool($value),
            $this === self::Float && \is_float($value) && \is_finite($value) => $value,
            $this === self::Float && \is_int($value) => (float) $value,
            $this === self::Float && \is_float($value) => throw MismatchException::described('float', 'a number out of range'),
            default => throw MismatchException::of($this->value, $value),
        };
    }

    public function encode(mixed $value): mixed
    {
        if ($this === self::Float && \is_float($value) && !\is_finite($value)) {
            throw MismatchException::described('a finite float', \is_nan($value) ? 'NAN' : 'INF');
        }
        if ($this === self::Text && \is_string($value) && \preg_match('//u', $value) !== 1) {
            throw MismatchException::described('UTF-8 text (encode bytes as base64)', 'a string that is not UTF-8');
        }

        return $this->decode($value);
    }

    public function schema(): string|array
    {
        return $this->value;
    }

    public function name(): string
    {
        return $this->value;
    }

    /** Whether a typed property refuses exactly what this type refuses, so that assigning is a sufficient check. */
    public function isCheckedByEngine(): bool
    {
        return $this !== self::Float;
    }
}
