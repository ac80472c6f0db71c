<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Codec;

use Weft\Bus\InvalidMessageClassError;
use Weft\Bus\Route;
use Weft\Bus\SerializedBy;
use Weft\Bus\Serializer;

/**
 * Formats and routes of message classes: by configuration, otherwise by attribute.
 *
 * A configured rule is for a class, a type name, an interface, a base class, or a pattern of type names.
 *
 * @internal
 */
final class MessageRules
{
    /**
     * @param array<string, Serializer> $serializers
     * @param array<string, Route>      $routes
     */
    public function __construct(
        private readonly array $serializers = [],
        private readonly array $routes = [],
    ) {}

    /** @param \ReflectionClass<object> $class */
    public function serializer(\ReflectionClass $class, string $type): ?Serializer
    {
        return self::match($this->serializers, $class, $type, 'serializers') ?? self::attribute($class, SerializedBy::class)?->serializer;
    }

    /** @param \ReflectionClass<object> $class */
    public function route(\ReflectionClass $class, string $type): ?Route
    {
        return self::match($this->routes, $class, $type, 'routes') ?? self::attribute($class, Route::class);
    }

    /** Whether `*` in the pattern can stand for any characters so that it is the type name. */
    public static function fits(string $pattern, string $type): bool
    {
        return \preg_match('/^' . \str_replace('\*', '.*', \preg_quote($pattern, '/')) . '$/Ds', $type) === 1;
    }

    /**
     * @template T of object
     *
     * @param array<string, T>         $rules
     * @param \ReflectionClass<object> $class
     * @return T|null
     * @throws InvalidMessageClassError when several rules fit equally well and differ
     */
    private static function match(array $rules, \ReflectionClass $class, string $type, string $what): ?object
    {
        $exact = $rules[$class->name] ?? $rules[$type] ?? null;
        if ($exact !== null || $rules === []) {
            return $exact;
        }
        $fitting = [];
        foreach ($rules as $rule => $value) {
            $rule = (string) $rule;
            $fits = \str_contains($rule, '*') ? self::fits($rule, $type) : (\class_exists($rule) || \interface_exists($rule)) && $class->isSubclassOf($rule);
            if ($fits) {
                $fitting[$rule] = $value;
            }
        }
        if (\count(\array_unique($fitting, \SORT_REGULAR)) > 1) {
            throw InvalidMessageClassError::because($class->name, "several {$what} fit it, " . \implode(' and ', \array_map(static fn(string $rule): string => "\"{$rule}\"", \array_keys($fitting))) . '; add one for the class itself');
        }

        return \array_values($fitting)[0] ?? null;
    }

    /**
     * @template T of object
     *
     * @param \ReflectionClass<object> $class
     * @param class-string<T>          $attribute
     * @return T|null
     */
    private static function attribute(\ReflectionClass $class, string $attribute): ?object
    {
        return ($class->getAttributes($attribute)[0] ?? null)?->newInstance();
    }
}
