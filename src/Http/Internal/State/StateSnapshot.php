<?php

declare(strict_types=1);

namespace Weft\Http\Internal\State;

/**
 * The values of static properties, static variables of functions, and the objects of an application at one moment.
 *
 * Objects are compared by identity: each property of an object that is in both snapshots is compared, and an object that is new is reported by
 * the property that holds it.
 *
 * @internal
 */
final class StateSnapshot
{
    /** Objects that are looked at; an application beyond that is compared in part. */
    private const MOST_OBJECTS = 20_000;

    /** Levels of arrays in arrays that are compared. */
    private const DEPTH = 4;

    /** Values of an array that are compared; of a longer one its length is. */
    private const MOST_VALUES = 1_000;

    /** @var array<string, StateValue> by `Class::$property` or `Class::method() $variable` */
    private array $statics = [];

    /** @var \WeakMap<object, array<string, StateValue>> by property */
    private \WeakMap $objects;

    /** @param object $application services are what it holds */
    public function __construct(object $application)
    {
        $this->objects = new \WeakMap();
        $this->readStatics();
        $this->readObjects($application);
    }

    /**
     * The differences from an earlier snapshot.
     *
     * @return array<string, LeftBehind> by the name of the changed value
     */
    public function since(self $before): array
    {
        $changes = [];
        foreach ($this->statics as $name => $value) {
            $earlier = $before->statics[$name] ?? null;
            // A class that was loaded meanwhile is no change.
            if ($earlier !== null && !$value->equals($earlier)) {
                $changes[$name] = new LeftBehind($name, $value->kind, $earlier->kind);
            }
        }
        foreach ($this->objects as $object => $properties) {
            $earlier = $before->objects[$object] ?? [];
            foreach ($properties as $property => $value) {
                if (isset($earlier[$property]) && !$value->equals($earlier[$property])) {
                    $name = self::className($object) . "::\$$property";
                    $changes[$name] = new LeftBehind($name, $value->kind, $earlier[$property]->kind);
                }
            }
        }

        return $changes;
    }

    private function readStatics(): void
    {
        foreach (\get_declared_classes() as $class) {
            // Weft's own are of the process, and anonymous classes have no name to look for.
            if (\str_starts_with($class, 'Weft\\') && !\str_starts_with($class, 'Weft\\Tests\\') || \str_contains($class, '@anonymous')) {
                continue;
            }
            $reflected = new \ReflectionClass($class);
            if ($reflected->isInternal()) {
                continue;
            }
            foreach ($reflected->getProperties(\ReflectionProperty::IS_STATIC) as $property) {
                if ($property->getDeclaringClass()->name === $class && $property->isInitialized()) {
                    $this->statics["$class::\$$property->name"] = $this->value($property->getValue());
                }
            }
            foreach ($reflected->getMethods() as $method) {
                if ($method->class === $class && $method->isUserDefined()) {
                    $this->readVariables("$class::$method->name()", $method);
                }
            }
        }
        foreach (\get_defined_functions()['user'] as $function) {
            \str_starts_with($function, 'weft\\') || $this->readVariables("$function()", new \ReflectionFunction($function));
        }
    }

    private function readVariables(string $function, \ReflectionFunctionAbstract $reflected): void
    {
        foreach ($reflected->getStaticVariables() as $name => $value) {
            $this->statics["$function \$$name"] = $this->value($value);
        }
    }

    private function readObjects(object $application): void
    {
        /** @var \SplQueue<object> $queue */
        $queue = new \SplQueue();
        $queue->enqueue($application);
        /** @var \SplObjectStorage<object, null> $seen */
        $seen = new \SplObjectStorage();
        $seen[$application] = null;
        while (!$queue->isEmpty() && \count($seen) < self::MOST_OBJECTS) {
            $object = $queue->dequeue();
            $properties = [];
            foreach (self::properties($object) as $name => $value) {
                $properties[$name] = $this->value($value);
                self::enqueue($value, $queue, $seen, self::DEPTH);
            }
            $this->objects[$object] = $properties;
        }
    }

    /**
     * @param \SplQueue<object> $queue
     * @param \SplObjectStorage<object, null> $seen
     */
    private static function enqueue(mixed $value, \SplQueue $queue, \SplObjectStorage $seen, int $depth): void
    {
        if (\is_array($value) && $depth > 0) {
            foreach (\array_slice($value, 0, self::MOST_VALUES) as $inner) {
                self::enqueue($inner, $queue, $seen, $depth - 1);
            }
        } elseif (\is_object($value) && !isset($seen[$value]) && !\str_starts_with($value::class, 'Weft\\Native\\') && !$value instanceof \Reflector) {
            $seen[$value] = null;
            $queue->enqueue($value);
        }
    }

    /** @return array<string, mixed> private ones of base classes included; of a closure what it is bound to */
    private static function properties(object $object): array
    {
        if ($object instanceof \Closure) {
            $reflected = new \ReflectionFunction($object);

            return \array_filter(['this' => $reflected->getClosureThis()] + $reflected->getStaticVariables(), static fn(mixed $value): bool => $value !== null);
        }
        if ($object instanceof \WeakMap || $object instanceof \Generator || $object instanceof \UnitEnum) {
            return [];
        }
        $properties = [];
        foreach ((array) $object as $name => $value) {
            $position = \strrpos((string) $name, "\0");
            $properties[$position === false ? (string) $name : \substr((string) $name, $position + 1)] = $value;
        }

        return $properties;
    }

    private function value(mixed $value): StateValue
    {
        return new StateValue(self::kind($value), self::fingerprint($value, self::DEPTH));
    }

    private static function kind(mixed $value): string
    {
        return match (true) {
            \is_object($value) => self::className($value),
            \is_array($value) => \sprintf('array of %d %s', \count($value), \count($value) === 1 ? 'value' : 'values'),
            \is_string($value) => \sprintf('string of %d bytes', \strlen($value)),
            default => \get_debug_type($value),
        };
    }

    private static function fingerprint(mixed $value, int $depth): string
    {
        if (\is_object($value)) {
            // The number alone is used again for another object.
            return $value::class . '#' . \spl_object_id($value);
        }
        if (!\is_array($value)) {
            return \is_resource($value) ? 'resource' . \get_resource_id($value) : \serialize($value);
        }
        if ($depth === 0 || \count($value) > self::MOST_VALUES) {
            return 'array' . \count($value);
        }
        $parts = [];
        foreach ($value as $key => $inner) {
            $parts[] = $key . '=' . self::fingerprint($inner, $depth - 1);
        }

        return \hash('xxh3', \implode("\n", $parts));
    }

    private static function className(object $object): string
    {
        return \explode('@anonymous', $object::class)[0] . (\str_contains($object::class, '@anonymous') ? '@anonymous' : '');
    }
}
