<?php

declare(strict_types=1);

namespace Weft\Http\Internal;

/**
 * The values of static properties at one moment, to which they are put back.
 *
 * @internal
 */
final class KeptStatics
{
    /** @var list<array{mixed}|null> of each property its value; null where it had none */
    private readonly array $values;

    /**
     * @param list<\ReflectionProperty> $properties static ones
     * @param list<class-string> $mutable classes whose static objects change themselves: copies of them are kept and put back
     */
    public function __construct(private readonly array $properties, private readonly array $mutable = [])
    {
        $this->values = \array_map(function (\ReflectionProperty $property): ?array {
            $value = self::value($property);

            return $value === null ? null : [$this->copy($property, $value[0])];
        }, $properties);
    }

    public function putBack(): void
    {
        foreach ($this->properties as $index => $property) {
            $kept = $this->values[$index];
            // A typed property cannot lose its value again.
            if ($kept !== null && self::value($property) !== $kept) {
                $property->setValue(null, $this->copy($property, $kept[0]));
            }
        }
    }

    /**
     * Leaves out classes that are not installed, and properties that a version does not have.
     *
     * @param array<string, list<string>> $properties by class
     *
     * @return list<\ReflectionProperty>
     */
    public static function installed(array $properties): array
    {
        $found = [];
        foreach ($properties as $class => $names) {
            foreach (\class_exists($class) ? $names : [] as $name) {
                $property = \property_exists($class, $name) ? new \ReflectionProperty($class, $name) : null;
                if ($property?->isStatic() === true) {
                    $found[] = $property;
                }
            }
        }

        return $found;
    }

    /** As {@see \Weft\Runtime\Realm::isolate()} takes it. */
    public static function name(\ReflectionProperty $property): string
    {
        return "{$property->class}::{$property->name}";
    }

    private function copy(\ReflectionProperty $property, mixed $value): mixed
    {
        return \is_object($value) && \in_array($property->class, $this->mutable, true) ? clone $value : $value;
    }

    /** @return array{mixed}|null */
    private static function value(\ReflectionProperty $property): ?array
    {
        return $property->isInitialized() ? [$property->getValue()] : null;
    }
}
