<?php

declare(strict_types=1);

namespace Weft\Http\Internal\Handlers;

use Weft\Http\NotFoundException;
use Weft\Http\Request;
use Weft\Internal\Codec\MismatchException;
use Weft\Internal\Codec\Type;

/**
 * A path parameter. A value of another type is not found.
 *
 * @internal
 */
final class PathArgument implements Argument
{
    public function __construct(public readonly string $name, public readonly Type $type)
    {
    }

    public function value(Request $request): mixed
    {
        try {
            return TextValue::decode($this->type, $request->parameters[$this->name]);
        } catch (MismatchException $mismatch) {
            throw new NotFoundException(previous: $mismatch);
        }
    }
}
