<?php

declare(strict_types=1);

namespace Weft\Http\Internal\Handlers;

use Weft\Internal\Codec\Compiler;
use Weft\Internal\Codec\DateTime;
use Weft\Internal\Codec\MismatchException;
use Weft\Internal\Codec\UnsupportedClassException;
use Weft\Runtime\Task;

/**
 * Objects and arrays as json_encode() takes them. Objects are encoded as messages of the bus are, unless they say themselves how.
 *
 * @internal
 */
final class JsonValue
{
    private const MAX_DEPTH = 256;

    private static ?Compiler $compiler = null;

    /** The compiler of all classes that handlers take and return. */
    public static function compiler(): Compiler
    {
        return self::$compiler ??= new Compiler();
    }

    /** @throws \TypeError it is neither an object nor an array, or contains something that has no JSON */
    public static function of(mixed $value): mixed
    {
        if (\is_array($value) || \is_object($value) && !$value instanceof \UnitEnum && !$value instanceof \DateTimeInterface) {
            return self::encode($value, 0);
        }
        throw self::refused(\get_debug_type($value));
    }

    private static function encode(mixed $value, int $depth): mixed
    {
        if (\is_array($value)) {
            $depth < self::MAX_DEPTH || throw new \TypeError('The handler returned arrays nested more than ' . self::MAX_DEPTH . ' deep');
            // Not in place: an element may be a reference, and writing to it would change the handler's array.
            $encoded = [];
            foreach ($value as $key => $item) {
                $encoded[$key] = \is_array($item) || \is_object($item) ? self::encode($item, $depth + 1) : $item;
            }

            return $encoded;
        }

        return match (true) {
            $value instanceof Task => throw self::refused('a task, which it must await,'),
            $value instanceof \JsonSerializable, $value instanceof \stdClass, $value instanceof \BackedEnum, !\is_object($value) => $value,
            $value instanceof \DateTimeImmutable => self::time($value),
            default => self::object($value),
        };
    }

    private static function time(\DateTimeImmutable $value): mixed
    {
        try {
            return (new DateTime())->encode($value);
        } catch (MismatchException $mismatch) {
            throw new \TypeError('The handler returned an invalid ' . $value::class . ": {$mismatch->problem}");
        }
    }

    private static function object(object $value): mixed
    {
        try {
            return self::compiler()->shape($value::class)->encode($value);
        } catch (UnsupportedClassException $unsupported) {
            throw self::refused($value::class, ": {$unsupported->getMessage()}");
        } catch (MismatchException $mismatch) {
            throw new \TypeError("The handler returned an invalid " . $value::class . ": at {$mismatch->path()} {$mismatch->problem}");
        }
    }

    private static function refused(string $what, string $reason = ''): \TypeError
    {
        return new \TypeError("The handler returned {$what} instead of a Weft\Http\Response, an object or an array$reason");
    }
}
