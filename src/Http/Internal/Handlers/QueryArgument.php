<?php

declare(strict_types=1);

namespace Weft\Http\Internal\Handlers;

use Weft\Http\Fault;
use Weft\Http\Request;
use Weft\Internal\Codec\MismatchException;
use Weft\Internal\Codec\Optional;
use Weft\Internal\Codec\Sequence;
use Weft\Internal\Codec\Type;

/**
 * A query parameter.
 *
 * @internal
 */
final class QueryArgument implements Argument
{
    public function __construct(
        public readonly string $name,
        public readonly Type $type,
        public readonly bool $isRequired,
        public readonly mixed $default,
    ) {
    }

    public static function isSupported(Type $type): bool
    {
        return TextValue::isSupported(self::item($type) ?? $type);
    }

    /** The type of the elements of a list. */
    private static function item(Type $type): ?Type
    {
        $type = $type instanceof Optional ? $type->inner : $type;

        return $type instanceof Sequence ? $type->item : null;
    }

    public function value(Request $request): mixed
    {
        $item = self::item($this->type);
        $text = $item === null ? ($request->queryParameters()[$this->name] ?? null) : QueryString::all($request->queryString(), $this->name);
        if ($text === null || $text === []) {
            return $this->isRequired ? throw $this->fault('the parameter is missing') : $this->default;
        }
        try {
            return self::decode($this->type, $item, $text);
        } catch (MismatchException $mismatch) {
            throw $this->fault($mismatch->problem);
        }
    }

    /** @throws MismatchException */
    private static function decode(Type $type, ?Type $item, mixed $text): mixed
    {
        if (\is_string($text)) {
            return TextValue::decode($type, $text);
        }
        if ($item === null || !\is_array($text)) {
            throw MismatchException::described($type->name(), 'several values');
        }

        return \array_map(static fn(mixed $one): mixed => TextValue::decode($item, (string) $one), \array_values($text));
    }

    private function fault(string $detail): FaultsException
    {
        return new FaultsException(400, [Fault::inQuery($this->name, $detail)]);
    }
}
