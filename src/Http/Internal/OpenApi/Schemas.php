<?php

declare(strict_types=1);

namespace Weft\Http\Internal\OpenApi;

use Weft\Internal\Codec\DateTime;
use Weft\Internal\Codec\Enumeration;
use Weft\Internal\Codec\Field;
use Weft\Internal\Codec\Instance;
use Weft\Internal\Codec\Map;
use Weft\Internal\Codec\Optional;
use Weft\Internal\Codec\Scalar;
use Weft\Internal\Codec\Sequence;
use Weft\Internal\Codec\Type;
use Weft\Validation\Internal\SchemaKeywords;

/**
 * The JSON schemas (2020-12) of the types of an API. Classes and enums become components.
 *
 * A class that clients both send and receive has two schemas if it has fields with defaults: those may be missing in what is sent, and are
 * always there in what is received.
 *
 * @internal
 */
final class Schemas
{
    /** @var array<string, array<string, mixed>> by name */
    public array $components = [];
    /** @var array<string, string> names by class and direction */
    private array $names = [];

    /**
     * @param array<class-string, array{sent: bool, received: bool, validated: bool}> $uses of the classes, as `uses()` found them
     */
    public function __construct(private readonly array $uses)
    {
    }

    /**
     * How classes are used.
     *
     * @param array<class-string, array{sent: bool, received: bool, validated: bool}> $uses
     *
     * @return array<class-string, array{sent: bool, received: bool, validated: bool}> with the type and what it contains
     */
    public static function uses(array $uses, Type $type, bool $isSent, bool $isValidated): array
    {
        if ($type instanceof Optional) {
            return self::uses($uses, $type->inner, $isSent, $isValidated);
        }
        if ($type instanceof Sequence || $type instanceof Map) {
            return self::uses($uses, $type->item, $isSent, $isValidated);
        }
        if (!$type instanceof Instance) {
            return $uses;
        }
        $known = $uses[$type->class] ?? ['sent' => false, 'received' => false, 'validated' => false];
        $now = ['sent' => $known['sent'] || $isSent, 'received' => $known['received'] || !$isSent, 'validated' => $known['validated'] || $isValidated];
        if ($now !== $known) {
            $uses[$type->class] = $now;
            foreach ($type->shape()->fields() as $field) {
                $uses = self::uses($uses, $field->type, $isSent, $isValidated);
            }
        }

        return $uses;
    }

    /** @return array<string, mixed> */
    public function of(Type $type, bool $isSent): array
    {
        return match (true) {
            $type === Scalar::Text => ['type' => 'string'],
            $type === Scalar::Int => ['type' => 'integer', 'format' => 'int64'],
            $type === Scalar::Float => ['type' => 'number'],
            $type === Scalar::Bool => ['type' => 'boolean'],
            $type instanceof DateTime => ['type' => 'string', 'format' => 'date-time'],
            $type instanceof Optional => self::nullable($this->of($type->inner, $isSent)),
            $type instanceof Sequence => ['type' => 'array', 'items' => $this->of($type->item, $isSent) ?: new \stdClass()],
            $type instanceof Map => ['type' => 'object', 'additionalProperties' => $this->of($type->item, $isSent) ?: new \stdClass()],
            $type instanceof Enumeration => ['$ref' => '#/components/schemas/' . $this->enumeration($type)],
            $type instanceof Instance => ['$ref' => '#/components/schemas/' . $this->instance($type, $isSent)],
            default => [],
        };
    }

    /**
     * @param array<string, mixed> $schema
     *
     * @return array<string, mixed>
     */
    private static function nullable(array $schema): array
    {
        return match (true) {
            $schema === [] => [],
            isset($schema['$ref']) => ['anyOf' => [$schema, ['type' => 'null']]],
            default => ['type' => [$schema['type'], 'null']] + $schema,
        };
    }

    private function enumeration(Enumeration $type): string
    {
        $known = $this->names[$type->enum] ?? null;
        if ($known !== null) {
            return $known;
        }
        $name = $this->name($type->enum, $type->enum, '');
        $this->components[$name] = ['type' => $type->isText ? 'string' : 'integer', 'enum' => \array_map(static fn(\BackedEnum $case): string|int => $case->value, $type->enum::cases())]
            + self::described(new DocComment((new \ReflectionClass($type->enum))->getDocComment()));

        return $name;
    }

    private function instance(Instance $type, bool $isSent): string
    {
        $isSplit = $this->isSplit($type);
        $key = $type->class . ($isSplit && $isSent ? ' sent' : '');
        $known = $this->names[$key] ?? null;
        if ($known !== null) {
            return $known;
        }
        $name = $this->name($key, $type->class, $isSplit && $isSent ? 'Input' : '');
        // Registered before its fields, of which one may be of the same class.
        $this->components[$name] = [];
        $properties = $required = [];
        foreach ($type->shape()->fields() as $field) {
            $properties[$field->name] = $this->field($type->class, $field, $isSent) ?: new \stdClass();
            if (!$isSent || !$field->optional) {
                $required[] = $field->name;
            }
        }
        $this->components[$name] = ['type' => 'object', 'properties' => $properties ?: new \stdClass()]
            + ($required === [] ? [] : ['required' => $required])
            + self::described(new DocComment($type->shape()->class->getDocComment()));

        return $name;
    }

    /** Whether it differs by direction, itself or by what it contains. */
    private function isSplit(Instance $type): bool
    {
        $use = $this->uses[$type->class] ?? null;
        if ($use === null || !$use['sent'] || !$use['received']) {
            return false;
        }
        foreach (\array_keys(self::uses([], $type, true, false)) as $class) {
            $isOptional = static fn(Field $field): bool => $field->optional;
            if (\array_filter($type->sibling($class)->shape()->fields(), $isOptional) !== []) {
                return true;
            }
        }

        return false;
    }

    /**
     * @param class-string $class
     *
     * @return array<string, mixed>
     */
    private function field(string $class, Field $field, bool $isSent): array
    {
        $schema = $this->of($field->type, $isSent);
        if ($this->uses[$class]['validated'] ?? false) {
            $schema += self::constraints($class, $field->name);
        }
        $schema = $schema + self::description($class, $field->name);
        $default = $isSent && $field->optional && $field->default !== null ? ($field->default)() : null;
        // That it may be missing says as much; generators of clients take a field with a default for one that is always there.
        if ($default !== null && $default !== []) {
            $schema['default'] = $field->type->encode($default);
        }

        return $schema;
    }

    /**
     * @param class-string $class
     *
     * @return array<string, mixed>
     */
    public static function constraints(string $class, string $property): array
    {
        return SchemaKeywords::of(self::property($class, $property));
    }

    /**
     * The words of the property, or those of the constructor about it.
     *
     * @param class-string $class
     *
     * @return array<string, string>
     */
    public static function description(string $class, string $property): array
    {
        $reflection = self::property($class, $property);
        $constructor = new DocComment($reflection->getDeclaringClass()->getConstructor()?->getDocComment() ?? false);
        $text = (new DocComment($reflection->getDocComment()))->text;
        $text = $text !== '' ? $text : $constructor->parameter($property);

        return $text === '' ? [] : ['description' => $text];
    }

    /** @param class-string $class */
    private static function property(string $class, string $name): \ReflectionProperty
    {
        $owner = new \ReflectionClass($class);
        // A class does not have the private properties of its parents.
        while (!$owner->hasProperty($name) && ($parent = $owner->getParentClass()) !== false) {
            $owner = $parent;
        }

        return $owner->getProperty($name);
    }

    /**
     * The short name of the class; the whole one for the second of that name.
     *
     * @param class-string $class
     */
    private function name(string $key, string $class, string $suffix): string
    {
        $short = (new \ReflectionClass($class))->getShortName() . $suffix;
        $name = isset($this->components[$short]) || \in_array($short, $this->names, true) ? \strtr($class, '\\', '.') . $suffix : $short;

        return $this->names[$key] = $name;
    }

    /** @return array<string, string> */
    private static function described(DocComment $comment): array
    {
        return $comment->text === '' ? [] : ['description' => $comment->text];
    }
}
