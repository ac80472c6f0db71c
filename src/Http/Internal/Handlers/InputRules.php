<?php

declare(strict_types=1);

namespace Weft\Http\Internal\Handlers;

use Weft\Internal\AttributeArea;
use Weft\Internal\AttributeCheck;
use Weft\Internal\Codec\PropertyRules;
use Weft\Internal\Codec\Type;

/**
 * Refuses the classes of bodies and queries whose attributes PHP ignores: a misspelt constraint would let everything pass.
 *
 * @internal
 */
final class InputRules implements PropertyRules
{
    public function problem(\ReflectionClass|\ReflectionProperty $place): ?string
    {
        return AttributeCheck::on($place, AttributeArea::Http);
    }

    public function type(\ReflectionProperty $property, Type $type): Type
    {
        return $type;
    }
}
