<?php

declare(strict_types=1);

namespace Weft\Internal\Codec;

/**
 * Additions of a package to the types of properties, such as encryption.
 *
 * @internal
 */
interface PropertyRules
{
    /**
     * @param \ReflectionClass<object>|\ReflectionProperty $place
     * @return string|null what is wrong with it, to stand behind its name
     */
    public function problem(\ReflectionClass|\ReflectionProperty $place): ?string;

    /**
     * @param Type $type of the property as declared
     * @throws UnsupportedTypeException
     */
    public function type(\ReflectionProperty $property, Type $type): Type;
}
