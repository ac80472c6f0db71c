<?php

declare(strict_types=1);

namespace Weft\Tests\Stubs;

/** Describes functions and classes, so that those of two processes can be compared. */
final class Signatures
{
    /** @return array<string, array{list<string>, string, bool}> what every callable takes, returns, and whether it is static */
    public static function ofExtension(string $name): array
    {
        $extension = new \ReflectionExtension($name);

        return self::of($extension->getFunctions(), $extension->getClasses());
    }

    /** @return array<string, array{list<string>, string, bool}> */
    public static function ofNamespace(string $namespace): array
    {
        $inside = static fn(string $name): bool => str_starts_with(strtolower($name), strtolower("$namespace\\"));
        $functions = array_filter(get_defined_functions()['user'], $inside);
        $classes = array_filter(get_declared_classes(), $inside);

        return self::of(
            array_map(static fn(string $name) => new \ReflectionFunction($name), $functions),
            array_map(static fn(string $name) => new \ReflectionClass($name), $classes),
        );
    }

    /**
     * @param array<\ReflectionFunction> $functions
     * @param array<\ReflectionClass<object>> $classes
     *
     * @return array<string, array{list<string>, string, bool}>
     */
    private static function of(array $functions, array $classes): array
    {
        $found = [];
        foreach ($functions as $function) {
            $found["$function->name()"] = self::describe($function);
        }
        foreach ($classes as $class) {
            $found[$class->name] = [[], '', false];
            foreach ($class->getMethods(\ReflectionMethod::IS_PUBLIC) as $method) {
                if (!$method->isConstructor()) {
                    $found["$class->name::$method->name()"] = self::describe($method);
                }
            }
        }
        ksort($found);

        return $found;
    }

    /** @return array{list<string>, string, bool} */
    private static function describe(\ReflectionFunctionAbstract $function): array
    {
        $parameters = [];
        foreach ($function->getParameters() as $parameter) {
            $optional = $parameter->isOptional() ? ' = …' : '';
            $parameters[] = ($parameter->getType() ?? 'mixed') . ' $' . $parameter->name . $optional;
        }

        return [
            $parameters,
            (string) ($function->getReturnType() ?? 'mixed'),
            $function instanceof \ReflectionMethod && $function->isStatic(),
        ];
    }
}
