<?php

declare(strict_types=1);

namespace Weft\Http\Internal\Routing;

use Weft\Http\InvalidRouteError;

/**
 * Handlers and middleware as closures. PHP's TypeError for what is not callable names neither the route nor what to write, and in other
 * frameworks the router makes controllers of their names.
 *
 * @internal
 */
final class Callback
{
    /**
     * @param string $role what it is for, to stand at the beginning of an error
     *
     * @throws InvalidRouteError
     */
    public static function of(mixed $given, string $role): \Closure
    {
        return \is_callable($given) ? $given(...) : throw new InvalidRouteError("$role is " . self::problem($given));
    }

    private static function problem(mixed $given): string
    {
        if (\is_array($given) && \array_is_list($given) && \count($given) === 2 && \is_string($given[1])) {
            return self::problemOfMethod($given[0], $given[1]);
        }
        $method = [];
        if (\is_string($given) && \preg_match('/^([\w\\\\]+)(?:@|::)(\w+)$/D', $given, $method) === 1) {
            return "\"$given\": write " . self::examples($method[1], $method[2]);
        }

        return match (true) {
            \is_string($given) && \class_exists($given) => "the name of the class $given, and Weft makes no objects: write " . self::examples($given, self::onlyMethod($given)),
            \is_string($given) => "\"$given\", which is no function",
            \is_object($given) => 'an object of ' . $given::class . ', which has no __invoke(): write ' . self::examples($given::class, self::onlyMethod($given::class)),
            default => \get_debug_type($given) . ', which cannot be called',
        };
    }

    private static function problemOfMethod(mixed $object, string $method): string
    {
        $class = \is_object($object) ? $object::class : (\is_string($object) ? $object : \get_debug_type($object));
        $shown = \is_object($object) ? "[an object of $class, '$method']" : "[$class::class, '$method']";

        return $shown . match (true) {
            !\class_exists($class) => ", but there is no class $class",
            !\method_exists($class, $method) => ", but $class has no method $method()",
            !(new \ReflectionMethod($class, $method))->isPublic() => ", but $class::$method() is not public",
            default => ", and Weft makes no objects: write " . self::examples($class, $method),
        };
    }

    private static function examples(string $class, string $method): string
    {
        $variable = '$' . \lcfirst(\substr((string) \strrchr("\\$class", '\\'), 1));

        return "[$variable, '$method'] or $variable->$method(...), where $variable is an object of $class";
    }

    /** @param class-string $class */
    private static function onlyMethod(string $class): string
    {
        $methods = \array_filter((new \ReflectionClass($class))->getMethods(\ReflectionMethod::IS_PUBLIC), static fn(\ReflectionMethod $method): bool => !\str_starts_with($method->name, '__'));

        return \count($methods) === 1 ? \array_values($methods)[0]->name : 'show';
    }
}
