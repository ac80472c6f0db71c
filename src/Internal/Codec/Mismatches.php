<?php

declare(strict_types=1);

namespace Weft\Internal\Codec;

/**
 * Finds every mismatch of a value, where decoding stops at the first.
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

    /** @return list<array{string, MismatchException, Type}> JSON pointer (RFC 6901), mismatch and type, at most 100 */
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
            $type instanceof Sequence && \is_array($value) && \array_is_list($value) => $this->each($type->item, $value, $at),
            $type instanceof Map && \is_array($value) && !$type->intKeys => $this->each($type->item, $value, $at),
            $type instanceof Instance && \is_array($value) && ($value === [] || !\array_is_list($value)) => $this->fields($type->shape(), $value, $at),
            default => $this->decode($type, $value, $at),
        };
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
            $this->found[] = [$at, $mismatch, $type];
        }
    }

    private static function escaped(string $segment): string
    {
        return \strtr($segment, ['~' => '~0', '/' => '~1']);
    }
}
