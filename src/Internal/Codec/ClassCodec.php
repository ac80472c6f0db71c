<?php

declare(strict_types=1);

namespace Weft\Internal\Codec;

/**
 * The compiled form of one class: how its objects are filled from arrays and read into them, without a constructor.
 *
 * Properties are touched by closures bound to the class that declares them, which is what private and readonly ask for.
 *
 * @internal
 */
final class ClassCodec
{
    /** Lists the properties without a value; no property can have this name. */
    private const UNINITIALIZED = '-uninitialized';

    /** Cloned for each message, which is the cheapest way to create an object; null where the class has a __clone(). */
    private readonly ?object $prototype;

    /** @var non-empty-list<\Closure(object, array, array): void> one per class of the hierarchy */
    private readonly array $writers;

    /** @var non-empty-list<\Closure(object, array): array> */
    private readonly array $readers;

    /** @var array<string, \ReflectionProperty> that may be uninitialized */
    private readonly array $uninitializable;

    /**
     * @param \ReflectionClass<object>             $class
     * @param array<class-string, list<Field>>     $fieldsByClass
     * @param bool                                 $keepsUninitialized whether a property without a value has none again afterwards; otherwise
     *                                                                 its object cannot be encoded
     */
    public function __construct(
        public readonly \ReflectionClass $class,
        private readonly array $fieldsByClass,
        bool $keepsUninitialized = false,
    ) {
        $this->prototype = $class->hasMethod('__clone') ? null : $class->newInstanceWithoutConstructor();
        /** @var non-empty-list<\Closure(object, array, array): void> $writers */
        $writers = \array_map(self::writer(...), \array_keys($fieldsByClass), $fieldsByClass);
        /** @var non-empty-list<\Closure(object, array): array> $readers */
        $readers = \array_map(self::reader(...), \array_keys($fieldsByClass), $fieldsByClass);
        $this->writers = $writers;
        $this->readers = $readers;
        $properties = [];
        foreach ($keepsUninitialized ? $fieldsByClass : [] as $declaring => $fields) {
            foreach ($fields as $field) {
                $properties[$field->name] = new \ReflectionProperty($declaring, $field->name);
            }
        }
        $this->uninitializable = $properties;
    }

    /**
     * @param array<string, mixed> $data
     * @throws MismatchException
     */
    public function decode(array $data): object
    {
        $object = $this->prototype === null ? $this->class->newInstanceWithoutConstructor() : clone $this->prototype;
        $uninitialized = $this->uninitializable ? $this->uninitializedIn($data) : [];
        try {
            foreach ($this->writers as $write) {
                $write($object, $data, $uninitialized);
            }
        } catch (\TypeError $error) {
            $this->explain(\array_diff_key($data, $uninitialized), $uninitialized);
            throw $error;
        }

        return $object;
    }

    /**
     * @return array<string, mixed>|\stdClass
     * @throws MismatchException
     */
    public function encode(object $object): array|\stdClass
    {
        $data = [];
        $uninitialized = $this->uninitializable ? \array_filter($this->uninitializable, static fn(\ReflectionProperty $property): bool => !$property->isInitialized($object)) : [];
        foreach ($this->readers as $read) {
            $data += $read($object, $uninitialized);
        }
        if ($uninitialized) {
            $data[self::UNINITIALIZED] = \array_keys($uninitialized);
        }

        /** @var array<string, mixed> $data */
        return $data === [] ? new \stdClass() : $data;
    }

    /** @return array<string, array{type: string|array<string, mixed>, optional: bool}> by the names of the fields, sorted */
    public function schema(): array
    {
        $schema = [];
        foreach ($this->fieldsByClass as $fields) {
            foreach ($fields as $field) {
                $schema[$field->name] = ['type' => $field->type->schema(), 'optional' => $field->optional];
            }
        }
        \ksort($schema);

        return $schema;
    }

    /** @return list<Field> of the class and its parents */
    public function fields(): array
    {
        return \array_merge(...\array_values($this->fieldsByClass));
    }

    /** @return array<string, \ReflectionProperty> */
    private function uninitializedIn(array $data): array
    {
        $names = $data[self::UNINITIALIZED] ?? null;

        if (!\is_array($names)) {
            return [];
        }
        /** @var array<string> $texts */
        $texts = \array_filter($names, \is_string(...));

        return \array_intersect_key($this->uninitializable, \array_flip($texts));
    }

    /**
     * Finds the field whose assignment the engine refused.
     *
     * @param array<string, \ReflectionProperty> $uninitialized
     */
    private function explain(array $data, array $uninitialized): void
    {
        foreach ($this->fieldsByClass as $fields) {
            foreach ($fields as $field) {
                if (\array_key_exists($field->name, $data)) {
                    self::decodeField($field, $data[$field->name]);
                } elseif (!$field->optional && !isset($uninitialized[$field->name])) {
                    throw self::missing($field);
                }
            }
        }
    }

    /** @param list<Field> $fields */
    private static function writer(string $class, array $fields): \Closure
    {
        $plan = [];
        foreach ($fields as $field) {
            $plan[$field->name] = $field->isCheckedByEngine() ? null : $field;
        }
        $missing = self::missing(...);

        return \Closure::bind(static function (object $object, array $data, array $uninitialized) use ($plan, $missing): void {
            if ($uninitialized) {
                /** @var \ReflectionProperty $property */
                foreach (\array_intersect_key($uninitialized, $plan) as $property) {
                    // It has its default value.
                    if ($property->isInitialized($object)) {
                        unset($object->{$property->name});
                    }
                }
                $plan = \array_diff_key($plan, $uninitialized);
            }
            foreach ($plan as $name => $field) {
                if ($field === null) {
                    $object->$name = $data[$name] ?? null;
                } elseif (\array_key_exists($name, $data)) {
                    try {
                        $object->$name = $field->type->decode($data[$name]);
                    } catch (MismatchException $mismatch) {
                        throw $mismatch->within(".{$name}");
                    }
                } elseif (!$field->optional) {
                    throw $missing($field);
                } elseif ($field->default !== null) {
                    $object->$name = ($field->default)();
                }
            }
        }, null, $class);
    }

    /** @param list<Field> $fields */
    private static function reader(string $class, array $fields): \Closure
    {
        $plan = [];
        foreach ($fields as $field) {
            $plan[$field->name] = $field->isCheckedByEngine() ? null : $field->type;
        }

        return \Closure::bind(static function (object $object, array $uninitialized) use ($plan): array {
            $data = [];
            foreach ($uninitialized ? \array_diff_key($plan, $uninitialized) : $plan as $name => $type) {
                try {
                    $data[$name] = $type === null ? $object->$name : $type->encode($object->$name);
                } catch (MismatchException $mismatch) {
                    throw $mismatch->within(".{$name}");
                }
            }

            return $data;
        }, null, $class);
    }

    private static function decodeField(Field $field, mixed $value): void
    {
        try {
            $field->type->decode($value);
        } catch (MismatchException $mismatch) {
            throw $mismatch->within(".{$field->name}");
        }
    }

    private static function missing(Field $field): MismatchException
    {
        return MismatchException::described($field->type->name(), 'nothing (the field is missing)')->within(".{$field->name}");
    }
}
