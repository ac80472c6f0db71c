<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Handlers;

/**
 * How inbox, retries, dead letters, metrics and logs name a handler: `Class::method`.
 *
 * @internal
 */
final class HandlerName
{
    /** Of lazy services before PHP 8.4: objects of a class that Symfony generates and names by a hash. */
    private const LAZY = 'Symfony\Component\VarExporter\LazyObjectInterface';

    /** @param \ReflectionClass<object> $class the registered one: several may inherit one method, and each is a handler of its own */
    public static function of(\ReflectionClass $class, \ReflectionMethod $method): string
    {
        while (\in_array(self::LAZY, $class->getInterfaceNames(), true) && $class->name !== $method->class && ($parent = $class->getParentClass()) !== false) {
            $class = $parent;
        }

        return "{$class->name}::{$method->name}";
    }

    /** The name of an inherited handler until 0.2, which retried messages and dead letters may carry: that of the class with the method. */
    public static function former(\ReflectionMethod $method): string
    {
        return "{$method->class}::{$method->name}";
    }
}
