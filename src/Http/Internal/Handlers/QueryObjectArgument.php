<?php

declare(strict_types=1);

namespace Weft\Http\Internal\Handlers;

use Weft\Http\Fault;
use Weft\Http\Request;
use Weft\Internal\Codec\ClassCodec;
use Weft\Internal\Codec\Field;
use Weft\Internal\Codec\MismatchException;
use Weft\Internal\Codec\Optional;

/**
 * An object whose properties are query parameters.
 *
 * @internal
 */
final class QueryObjectArgument implements Argument
{
    /** @var list<Field> */
    public readonly array $fields;

    public function __construct(public readonly ClassCodec $class)
    {
        $this->fields = $class->fields();
    }

    public function value(Request $request): object
    {
        $data = $faults = [];
        $query = $request->queryString();
        foreach ($this->fields as $field) {
            try {
                $values = QueryString::all($query, $field->name, $field->type);
                if ($values !== []) {
                    // Encoded again, because the codec of the class reads JSON.
                    $data[$field->name] = $field->type->encode(QueryString::decode($field->type, $values));
                } elseif (!$field->optional && $field->type instanceof Optional) {
                    $data[$field->name] = null;
                } elseif (!$field->optional) {
                    $faults[] = Fault::inQuery($field->name, 'the parameter is missing');
                }
            } catch (MismatchException $mismatch) {
                $faults[] = Fault::inQuery($field->name, FaultDetail::of($mismatch, QueryString::item($field->type)));
            }
        }

        return $faults === [] ? $this->class->decode($data) : throw new FaultsException(400, $faults);
    }
}
