<?php

declare(strict_types=1);

namespace Weft\Http\Internal\Handlers;

use Weft\Internal\Codec\DateTime;
use Weft\Internal\Codec\Enumeration;
use Weft\Internal\Codec\MismatchException;
use Weft\Internal\Codec\Optional;
use Weft\Internal\Codec\Scalar;
use Weft\Internal\Codec\Type;

/**
 * Values of paths, queries and header fields, which are text, as the types that handlers declare.
 *
 * @internal
 */
final class TextValue
{
    private const BOOLS = ['true' => true, '1' => true, 'false' => false, '0' => false];

    /** Numbers as JSON has them: filter_var() also takes spaces around them, a plus sign and more. */
    private const INT = '/^-?(?:0|[1-9]\d*)$/D';
    /** As the field of a form may send it, without the zero before the point, too. */
    private const FLOAT = '/^-?(?:0|[1-9]\d*|(?=\.))(?:\.\d+)?(?:[eE][+-]?\d+)?$/D';

    public static function isSupported(Type $type): bool
    {
        $type = $type instanceof Optional ? $type->inner : $type;

        return $type instanceof Scalar || $type instanceof Enumeration || $type instanceof DateTime;
    }

    /**
     * @return string|int|float|bool|\BackedEnum|\DateTimeImmutable
     *
     * @throws MismatchException
     */
    public static function decode(Type $type, string $text): mixed
    {
        return match (true) {
            $type === Scalar::Text => \preg_match('//u', $text) === 1 ? $text : throw MismatchException::described('UTF-8 text', 'other bytes'),
            $type === Scalar::Int => self::int($text) ?? throw self::noNumber('int', $text),
            $type === Scalar::Float => self::float($text) ?? throw self::noNumber('float', $text),
            $type === Scalar::Bool => self::BOOLS[$text] ?? throw MismatchException::described('bool (true, false, 1 or 0)', 'text'),
            $type instanceof Optional => self::decode($type->inner, $text),
            $type instanceof Enumeration => self::case($type, $text),
            default => $type->decode($text),
        };
    }

    private static function int(string $text): ?int
    {
        $number = \preg_match(self::INT, $text) === 1 ? \filter_var($text, \FILTER_VALIDATE_INT) : false;

        return $number === false ? null : $number;
    }

    private static function float(string $text): ?float
    {
        $number = \preg_match(self::FLOAT, $text) === 1 ? \filter_var($text, \FILTER_VALIDATE_FLOAT) : false;

        return $number === false || !\is_finite($number) ? null : $number;
    }

    private static function noNumber(string $name, string $text): MismatchException
    {
        return MismatchException::described($name, $text === '' ? 'nothing' : 'text');
    }

    private static function case(Enumeration $type, string $text): mixed
    {
        $value = $type->isText ? $text : self::int($text);
        $case = $value === null ? null : $type->enum::tryFrom($value);

        return $case ?? throw MismatchException::described($type->name(), 'another value');
    }
}
