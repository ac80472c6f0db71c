<?php

declare(strict_types=1);

namespace Weft\Protobuf\Internal;

/**
 * Compares a message class with the descriptor it says it follows, before the extension writes to its properties. Called by
 * the extension, once per class.
 *
 * @internal
 */
final class MessageClass
{
    /**
     * @param class-string $class
     * @param list<array{string, string}> $fields name and PHP type of every field
     *
     * @return list<string>|string the name of each field's property, or what is wrong
     */
    public static function properties(string $class, array $fields): array|string
    {
        $reflection = new \ReflectionClass($class);
        if (!$reflection->isFinal() || !$reflection->isInstantiable()) {
            return "{$class} must be a final class with a public constructor, as it was generated";
        }
        $names = $expected = [];
        foreach ($fields as [$field, $type]) {
            $names[] = $name = Names::property($field);
            $expected[$name] = $type;
        }
        foreach ([...$expected, self::UNKNOWN_FIELDS => 'string'] as $name => $type) {
            $problem = self::problem($reflection, (string) $name, $type);
            if ($problem !== null) {
                return "{$class}::\${$name} {$problem}: the class does not fit its descriptor, generate it again";
            }
        }
        foreach ($reflection->getProperties() as $property) {
            if (!$property->isStatic() && !isset($expected[$property->getName()]) && $property->getName() !== self::UNKNOWN_FIELDS) {
                return "{$class}::\${$property->getName()} is no field of the message: the class does not fit its descriptor, generate it again";
            }
        }

        return $names;
    }

    /**
     * @param class-string<\BackedEnum> $enum
     *
     * @return array<int, string>|string the name of the first case of every number, or what is wrong
     */
    public static function cases(string $enum): array|string
    {
        if (!\enum_exists($enum) || (string) (new \ReflectionEnum($enum))->getBackingType() !== 'int') {
            return "{$enum} must be an enum backed by int, as it was generated";
        }
        /** @var array<int, string> $cases */
        $cases = [];
        foreach ($enum::cases() as $case) {
            $cases[(int) $case->value] = $case->name;
        }

        return $cases;
    }

    private const UNKNOWN_FIELDS = 'unknownFields';

    /** @param \ReflectionClass<object> $class */
    private static function problem(\ReflectionClass $class, string $name, string $type): ?string
    {
        if (!$class->hasProperty($name)) {
            return 'is missing';
        }
        $property = $class->getProperty($name);
        if ($property->isStatic() || $property->isReadOnly()) {
            return 'must be neither static nor readonly';
        }
        $found = (string) $property->getType();
        if (self::parts($found) !== self::parts($type)) {
            return "has the type {$found}, expected {$type}";
        }

        return null;
    }

    /** @return list<string> */
    private static function parts(string $type): array
    {
        $parts = $type[0] === '?' ? [\substr($type, 1), 'null'] : \explode('|', $type);
        \sort($parts);

        return $parts;
    }
}
