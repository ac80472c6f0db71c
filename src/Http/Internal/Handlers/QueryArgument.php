<?php

declare(strict_types=1);

namespace Weft\Http\Internal\Handlers;

use Weft\Http\Fault;
use Weft\Http\Request;
use Weft\Internal\Codec\MismatchException;
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
        return TextValue::isSupported(QueryString::item($type));
    }

    public function value(Request $request): mixed
    {
        try {
            $values = QueryString::all($request->queryString(), $this->name, $this->type);
            if ($values === []) {
                return $this->isRequired ? throw $this->fault('the parameter is missing') : $this->default;
            }

            return QueryString::decode($this->type, $values);
        } catch (MismatchException $mismatch) {
            throw $this->fault(FaultDetail::of($mismatch, QueryString::item($this->type)));
        }
    }

    private function fault(string $detail): FaultsException
    {
        return new FaultsException(400, [Fault::inQuery($this->name, $detail)]);
    }
}
