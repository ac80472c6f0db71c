<?php

declare(strict_types=1);

namespace Weft\Internal\Codec;

/**
 * A backed enum, by its backing value.
 *
 * @internal
 */
final class Enumeration implements Type
{
    public readonly bool $isText;

    /** @param class-string<\BackedEnum> $enum */
    public function __construct(public readonly string $enum)
    {
        $this->isText = (string) (new \ReflectionEnum($enum))->getBackingType() === 'string';
    }

    public function decode(mixed $value): mixed
    {
        if ($this->isText ? !\is_string($value) : !\is_int($value)) {
            throw MismatchException::of($this->name(), $value);
        }

        return $this->enum::tryFrom($value)
            ?? throw MismatchException::described($this->name(), 'a ' . \get_debug_type($value) . ' that is not one of its cases');
    }

    public function encode(mixed $value): mixed
    {
        return $value instanceof $this->enum ? $value->value : throw MismatchException::of($this->name(), $value);
    }

    public function schema(): string|array
    {
        return ['enum' => \array_map(static fn(\BackedEnum $case): string|int => $case->value, $this->enum::cases())];
    }

    public function name(): string
    {
        return "enum {$this->enum} (" . ($this->isText ? 'string' : 'int') . ')';
    }
}
