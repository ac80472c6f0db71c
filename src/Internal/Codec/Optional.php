<?php

declare(strict_types=1);

namespace Weft\Internal\Codec;

/**
 * A type or null.
 *
 * @internal
 */
final class Optional implements Type
{
    public function __construct(public readonly Type $inner) {}

    public function decode(mixed $value): mixed
    {
        return $value === null ? null : $this->inner->decode($value);
    }

    public function encode(mixed $value): mixed
    {
        return $value === null ? null : $this->inner->encode($value);
    }

    public function schema(): string|array
    {
        return ['nullable' => $this->inner->schema()];
    }

    public function name(): string
    {
        return $this->inner->name() . ' or null';
    }
}
