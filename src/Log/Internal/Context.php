<?php

declare(strict_types=1);

namespace Weft\Log\Internal;

use Weft\Internal\Number;
use Weft\Internal\Printable;

/**
 * Converts a log context of any size, depth and type into bounded JSON values.
 *
 * @internal
 */
final class Context
{
    /** Approximate bytes of all values together. */
    public const MAX_BYTES = 32_768;
    /** Elements of one array or object. */
    public const MAX_ITEMS = 100;
    private const MAX_DEPTH = 5;
    private const KEY_BYTES = 200;
    /** The minimum size of an element. */
    private const ITEM_BYTES = 8;

    private int $left = self::MAX_BYTES;

    /**
     * @param array<array-key, mixed> $context
     *
     * @return array<array-key, mixed>
     */
    public static function of(array $context): array
    {
        return (new self())->items($context, self::MAX_DEPTH);
    }

    /** A string of at most {@see Message::VALUE_BYTES}, or a value no longer than that. */
    public static function plain(mixed $value): string|int|float|bool|null
    {
        return match (true) {
            \is_float($value) && !\is_finite($value) => Number::text($value),
            $value === null, \is_int($value), \is_float($value), \is_bool($value) => $value,
            \is_string($value) => Printable::cut($value, Message::VALUE_BYTES),
            $value instanceof \DateTimeInterface => $value->format(\DATE_RFC3339_EXTENDED),
            $value instanceof \BackedEnum => $value->value,
            $value instanceof \UnitEnum => $value->name,
            $value instanceof \Stringable => self::string($value),
            default => \get_debug_type($value),
        };
    }

    private static function string(\Stringable $value): string
    {
        try {
            return Printable::cut((string) $value, Message::VALUE_BYTES);
        } catch (\Throwable $thrown) {
            return self::unreadable($value, $thrown);
        }
    }

    private static function unreadable(object $value, \Throwable $thrown): string
    {
        return \get_debug_type($value) . ' (unreadable: ' . \get_debug_type($thrown) . ')';
    }

    private function value(mixed $value, int $depth): mixed
    {
        if ($value instanceof \Throwable) {
            return $this->exception($value);
        }
        if (\is_array($value)) {
            return $depth === 0 ? 'array' : $this->items($value, $depth - 1);
        }
        if (\is_object($value) && !$value instanceof \DateTimeInterface && !$value instanceof \UnitEnum && !$value instanceof \Stringable) {
            return $depth === 0 ? \get_debug_type($value) : $this->object($value, $depth - 1);
        }
        $plain = self::plain($value);
        $this->left -= \is_string($plain) ? \strlen($plain) : 0;

        return $plain;
    }

    /** @return array<string, mixed> */
    private function exception(\Throwable $error): array
    {
        $fields = ExceptionReport::fields($error);
        \array_walk_recursive($fields, function (string $text): void {
            $this->left -= \strlen($text);
        });

        /** @var array<string, mixed> $fields */
        return $fields;
    }

    /**
     * @param array<array-key, mixed> $items
     *
     * @return array<array-key, mixed>
     */
    private function items(array $items, int $depth): array
    {
        $plain = [];
        foreach ($items as $key => $item) {
            if (\count($plain) === self::MAX_ITEMS || $this->left <= 0) {
                $plain['…'] = \count($items) - \count($plain) . ' more';
                break;
            }
            $key = \is_string($key) ? Printable::cut($key, self::KEY_BYTES) : $key;
            $this->left -= self::ITEM_BYTES + \strlen((string) $key);
            $plain[$key] = $this->value($item, $depth);
        }

        return $plain;
    }

    private function object(object $value, int $depth): mixed
    {
        try {
            if (!$value instanceof \JsonSerializable) {
                return $this->items(\get_object_vars($value), $depth) ?: \get_debug_type($value);
            }
            $data = $value->jsonSerialize();

            return $data === $value ? \get_debug_type($value) : $this->value($data, $depth);
        } catch (\Throwable $thrown) {
            return self::unreadable($value, $thrown);
        }
    }
}
