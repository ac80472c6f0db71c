<?php

declare(strict_types=1);

namespace Weft\Http\Internal\Handlers;

use Weft\Internal\Codec\Compiler;
use Weft\Internal\Codec\DateTime;
use Weft\Internal\Codec\Map;
use Weft\Internal\Codec\MismatchException;
use Weft\Internal\Codec\Optional;
use Weft\Internal\Codec\Sequence;
use Weft\Internal\Codec\Type;
use Weft\Internal\Codec\UnsupportedClassException;
use Weft\Internal\Printable;
use Weft\Runtime\Task;

/**
 * Objects and arrays as json_encode() takes them. Objects are encoded as messages of the bus are, unless they say themselves how.
 *
 * @internal
 */
final class JsonValue
{
    private const MAX_DEPTH = 256;
    /** Longest excerpt of a text in an error, in bytes. */
    private const SHOWN_BYTES = 40;

    private static ?Compiler $compiler = null;

    /** The compiler of all classes that handlers return. */
    public static function compiler(): Compiler
    {
        return self::$compiler ??= new Compiler();
    }

    /**
     * @param Type|null $type that is declared: it tells an empty map, an object of JSON, from an empty list
     *
     * @throws UnusableResultException it is neither an object nor an array, or contains something that has no JSON
     */
    public static function of(mixed $value, ?Type $type = null): mixed
    {
        if (\is_array($value) || \is_object($value) && !$value instanceof \UnitEnum && !$value instanceof \DateTimeInterface) {
            return self::encode($value, 0, $type);
        }
        throw new UnusableResultException(match (true) {
            \is_string($value) => 'returned string ("' . Printable::cut($value, self::SHOWN_BYTES) . '"); return Response::text($text), or an object or array for JSON',
            \is_object($value) => 'returned ' . $value::class . ', which is a single value in JSON; return an object or array that contains it, or a Response',
            default => 'returned ' . \get_debug_type($value) . (\is_scalar($value) ? ' (' . \var_export($value, true) . ')' : '') . '; return a Response, or an object or array for JSON',
        });
    }

    private static function encode(mixed $value, int $depth, ?Type $type): mixed
    {
        if (\is_array($value)) {
            $type = $type instanceof Optional ? $type->inner : $type;
            $itemType = $type instanceof Map || $type instanceof Sequence ? $type->item : null;
            $depth < self::MAX_DEPTH || throw new UnusableResultException('returned arrays nested more than ' . self::MAX_DEPTH . ' deep');
            if ($type instanceof Sequence && !\array_is_list($value)) {
                throw new UnusableResultException('returned an array with the key ' . self::keyOutsideOfAList($value) . ' where its type is a list, whose keys are 0, 1, 2, …; return array_values() of it');
            }
            // Not in place: an element may be a reference, and writing to it would change the handler's array.
            $encoded = [];
            foreach ($value as $key => $item) {
                $encoded[$key] = \is_array($item) || \is_object($item) ? self::encode($item, $depth + 1, $itemType) : $item;
            }

            // Every other array is an object of JSON in any case.
            return $type instanceof Map && \array_is_list($encoded) ? (object) $encoded : $encoded;
        }

        return match (true) {
            $value instanceof Task => throw new UnusableResultException('returned a task' . ($depth === 0 ? '' : ' in its array') . '; return what await() of the task returns'),
            $value instanceof \Generator => throw new UnusableResultException('returned a generator' . ($depth === 0 ? '; return Response::stream() with it to stream, or an array of its values' : ' in its array; return an array of its values')),
            $value instanceof \JsonSerializable, $value instanceof \stdClass, $value instanceof \BackedEnum, !\is_object($value) => $value,
            $value instanceof \DateTimeImmutable => self::time($value),
            default => self::object($value, $depth),
        };
    }

    /** @param array<mixed> $value */
    private static function keyOutsideOfAList(array $value): string
    {
        $keys = \array_keys($value);
        $first = \array_values(\array_diff_assoc($keys, \array_keys($keys)))[0];

        return \is_int($first) ? (string) $first : '"' . Printable::cut($first, self::SHOWN_BYTES) . '"';
    }

    private static function time(\DateTimeImmutable $value): mixed
    {
        try {
            return (new DateTime())->encode($value);
        } catch (MismatchException $mismatch) {
            throw new UnusableResultException('returned an invalid ' . $value::class . ": {$mismatch->problem}");
        }
    }

    private static function object(object $value, int $depth): mixed
    {
        try {
            return self::compiler()->shape($value::class)->encode($value);
        } catch (UnsupportedClassException $unsupported) {
            throw new UnusableResultException('returned ' . ($depth === 0 ? '' : 'an array with ') . "{$unsupported->class}, which cannot be encoded as JSON: {$unsupported->reason}");
        } catch (MismatchException $mismatch) {
            throw new UnusableResultException('returned an invalid ' . $value::class . ": at {$mismatch->path()} {$mismatch->problem}");
        }
    }
}
