<?php

declare(strict_types=1);

namespace Weft\Internal\Codec;

/**
 * Finds every mismatch of a value, where decoding stops at the first. It tells an empty list from an empty object, which decoding cannot.
 *
 * @internal
 */
final class Mismatches
{
    /** An attacker chooses how many there are. */
    public const MAX_COUNT = 100;

    /** @var list<array{string, MismatchException, Type}> */
    private array $found = [];

    private function __construct() {}

    /**
     * @param mixed $value what json_decode() gave, objects as stdClass
     *
     * @return list<array{string, MismatchException, Type}> JSON pointer (RFC 6901), mismatch and type, at most 100
     */
    public static function of(Type $type, mixed $value): array
    {
        $mismatches = new self();
        $mismatches->check($type, $value, '');

        return $mismatches->found;
    }

    private function check(Type $type, mixed $value, string $at): void
    {
        if (\count($this->found) >= self::MAX_COUNT) {
            return;
        }
        match (true) {
            $type instanceof Optional => $value === null || $this->check($type->inner, $value, $at),
            $type instanceof Sequence => \is_array($value) ? $this->each($type->item, $value, $at) : $this->refuse($type, $value, $at),
            $type instanceof Map => $value instanceof \stdClass ? $this->entries($type, (array) $value, $at) : $this->refuse($type, $value, $at),
            $type instanceof Instance => $value instanceof \stdClass ? $this->fields($type->shape(), (array) $value, $at) : $this->refuse($type, $value, $at),
            default => $this->decode($type, $value, $at),
        };
    }

    private function refuse(Type $type, mixed $value, string $at): void
    {
        $this->found[] = [$at, MismatchException::described($type->name(), self::typeOf($value)), $type];
    }

    /** @param array<array-key, mixed> $values */
    private function entries(Map $type, array $values, string $at): void
    {
        foreach (\array_keys($values) as $key) {
            if ($type->intKeys && \is_string($key) && \count($this->found) < self::MAX_COUNT) {
                $this->found[] = ["$at/" . self::escaped($key), MismatchException::described('int keys', 'a string key'), $type->item];
                unset($values[$key]);
            }
        }
        $this->each($type->item, $values, $at);
    }

    /** @param array<array-key, mixed> $values */
    private function each(Type $item, array $values, string $at): void
    {
        foreach ($values as $key => $value) {
            $this->check($item, $value, "$at/" . self::escaped((string) $key));
        }
    }

    /** @param array<array-key, mixed> $data */
    private function fields(ClassCodec $class, array $data, string $at): void
    {
        foreach ($class->fields() as $field) {
            $pointer = "$at/" . self::escaped($field->name);
            if (\array_key_exists($field->name, $data)) {
                $this->check($field->type, $data[$field->name], $pointer);
            } elseif (!$field->optional) {
                $this->found[] = [$pointer, MismatchException::described($field->type->name(), 'nothing (the field is missing)'), $field->type];
            }
        }
    }

    private function decode(Type $type, mixed $value, string $at): void
    {
        try {
            $type->decode($value);
        } catch (MismatchException $mismatch) {
            $isPlain = !\is_array($value) && !$value instanceof \stdClass;
            $this->found[] = [$at, $isPlain ? $mismatch : MismatchException::described($mismatch->expected, self::typeOf($value)), $type];
        }
    }

    private static function typeOf(mixed $value): string
    {
        return match (true) {
            \is_array($value) => 'list',
            $value instanceof \stdClass => 'object',
            default => MismatchException::typeOf($value),
        };
    }

    /** A segment of a JSON pointer (RFC 6901 §3). */
    public static function escaped(string $segment): string
    {
        return \strtr($segment, ['~' => '~0', '/' => '~1']);
    }
}
