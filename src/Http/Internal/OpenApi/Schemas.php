<?php

declare(strict_types=1);

namespace Weft\Http\Internal\OpenApi;

use Weft\Internal\Codec\DateTime;
use Weft\Internal\Codec\Enumeration;
use Weft\Internal\Codec\Field;
use Weft\Internal\Codec\Instance;
use Weft\Internal\Codec\Map;
use Weft\Internal\Codec\MismatchException;
use Weft\Internal\Codec\Optional;
use Weft\Internal\Codec\Scalar;
use Weft\Internal\Codec\Sequence;
use Weft\Internal\Codec\Type;
use Weft\Validation\Internal\SchemaKeywords;

/**
 * The JSON schemas (2020-12) of the types of an API. Classes and enums become components.
 *
 * A class has several schemas if its uses differ. Fields with defaults may be missing in what clients send, and are always there in what
 * they receive. Constraints are those that the handler checks: none in what clients receive, and otherwise those of its groups.
 *
 * @internal
 */
final class Schemas
{
    /** @var array<string, array<string, mixed>> by name */
    public array $components = [];
    /** @var array<string, string> names by class and variant */
    private array $names = [];
    /** @var array<class-string, array<string, true>> the variants of each class that the API uses, in the order of their first use */
    private array $variants = [];
    /** @var array<string, string> variants by class and use */
    private array $known = [];

    /**
     * Has to be called for each type before the first schema is made: the names of a class depend on all its variants.
     *
     * @param bool $isSent by clients
     * @param list<string>|null $groups of constraints by which it is validated; null if it is not
     */
    public function register(Type $type, bool $isSent, ?array $groups = null): void
    {
        $type = self::instanceIn($type);
        if ($type === null) {
            return;
        }
        $variant = $this->variant($type, $isSent, $groups);
        if (isset($this->variants[$type->class][$variant])) {
            return;
        }
        $this->variants[$type->class][$variant] = true;
        foreach ($type->shape()->fields() as $field) {
            $this->register($field->type, $isSent, self::nestedGroups($type, $field, $groups));
        }
    }

    /** The objects that a type has, in lists and maps too. */
    private static function instanceIn(Type $type): ?Instance
    {
        return match (true) {
            $type instanceof Instance => $type,
            $type instanceof Optional => self::instanceIn($type->inner),
            $type instanceof Sequence, $type instanceof Map => self::instanceIn($type->item),
            default => null,
        };
    }

    /**
     * @param list<string>|null $groups
     *
     * @return list<string>|null
     */
    private static function nestedGroups(Instance $type, Field $field, ?array $groups): ?array
    {
        return $groups === null ? null : SchemaKeywords::nestedGroups($type->class, $field->name, $groups);
    }

    /**
     * Which schema of a class a use needs: an empty text for the one without constraints and with all fields required.
     *
     * @param list<string>|null $groups
     */
    private function variant(Instance $type, bool $isSent, ?array $groups): string
    {
        $checked = $groups === null ? null : 'checked ' . \implode(',', $groups);

        return $this->known["{$type->class} $isSent $checked"] ??= match (true) {
            !$isSent => '',
            $groups !== null && self::hasConstraints($type, $groups) => (string) $checked,
            self::hasOptionalFields($type) => 'sent',
            default => '',
        };
    }

    /**
     * Of its fields or of those that are validated with it.
     *
     * @param list<string> $groups
     */
    private static function hasConstraints(Instance $type, array $groups): bool
    {
        $seen = [];
        $next = [[$type, $groups]];
        while ($next !== []) {
            [$one, $inGroups] = \array_pop($next);
            $key = "{$one->class} " . \implode(',', $inGroups);
            foreach (isset($seen[$key]) ? [] : $one->shape()->fields() as $field) {
                if (SchemaKeywords::of($one->class, $field->name, $field->type, $inGroups) !== []) {
                    return true;
                }
                [$inner, $nested] = [self::instanceIn($field->type), self::nestedGroups($one, $field, $inGroups)];
                if ($inner !== null && $nested !== null) {
                    $next[] = [$inner, $nested];
                }
            }
            $seen[$key] = true;
        }

        return false;
    }

    /** Itself or by what it contains. */
    private static function hasOptionalFields(Instance $type): bool
    {
        $seen = [];
        $next = [$type];
        while ($next !== []) {
            $one = \array_pop($next);
            foreach (isset($seen[$one->class]) ? [] : $one->shape()->fields() as $field) {
                if ($field->optional) {
                    return true;
                }
                $next = [...$next, ...\array_filter([self::instanceIn($field->type)])];
            }
            $seen[$one->class] = true;
        }

        return false;
    }

    /**
     * @param list<string>|null $groups as of register()
     *
     * @return array<string, mixed>
     */
    public function of(Type $type, bool $isSent, ?array $groups = null): array
    {
        return match (true) {
            $type === Scalar::Text => ['type' => 'string'],
            $type === Scalar::Int => ['type' => 'integer', 'format' => 'int64'],
            $type === Scalar::Float => ['type' => 'number'],
            $type === Scalar::Bool => ['type' => 'boolean'],
            $type instanceof DateTime => ['type' => 'string', 'format' => 'date-time'],
            $type instanceof Optional => self::nullable($this->of($type->inner, $isSent, $groups)),
            $type instanceof Sequence => ['type' => 'array', 'items' => $this->of($type->item, $isSent, $groups) ?: new \stdClass()],
            $type instanceof Map => ['type' => 'object', 'additionalProperties' => $this->of($type->item, $isSent, $groups) ?: new \stdClass()],
            $type instanceof Enumeration => ['$ref' => '#/components/schemas/' . $this->enumeration($type)],
            $type instanceof Instance => ['$ref' => '#/components/schemas/' . $this->instance($type, $isSent, $groups)],
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

    /** @param list<string>|null $groups */
    private function instance(Instance $type, bool $isSent, ?array $groups): string
    {
        $variant = $this->variant($type, $isSent, $groups);
        $key = "{$type->class} $variant";
        $known = $this->names[$key] ?? null;
        if ($known !== null) {
            return $known;
        }
        $name = $this->name($key, $type->class, $this->suffix($type->class, $variant));
        // Registered before its fields, of which one may be of the same class.
        $this->components[$name] = [];
        $properties = $required = [];
        foreach ($type->shape()->fields() as $field) {
            $properties[$field->name] = $this->field($type, $field, $isSent, $groups) ?: new \stdClass();
            if (!$isSent || !$field->optional) {
                $required[] = $field->name;
            }
        }
        $this->components[$name] = ['type' => 'object', 'properties' => $properties ?: new \stdClass()]
            + ($required === [] ? [] : ['required' => $required])
            + self::described(new DocComment($type->shape()->class->getDocComment()));

        return $name;
    }

    /**
     * Nothing for what the server sends, or for the only variant; `Input`, `Input2` … for the others.
     *
     * @param class-string $class
     */
    private function suffix(string $class, string $variant): string
    {
        $variants = \array_keys($this->variants[$class] ?? []);
        $others = \array_values(\array_diff($variants, ['']));
        if ($variant === '' || \count($variants) < 2) {
            return '';
        }
        $index = (int) \array_search($variant, $others, true);

        return ($others === $variants ? '' : 'Input') . ($index === 0 ? '' : $index + 1);
    }

    /**
     * @param list<string>|null $groups
     *
     * @return array<string, mixed>
     */
    private function field(Instance $type, Field $field, bool $isSent, ?array $groups): array
    {
        $schema = $this->of($field->type, $isSent, self::nestedGroups($type, $field, $groups));
        if ($groups !== null) {
            $schema = SchemaKeywords::added($schema, $type->class, $field->name, $field->type, $groups);
        }
        $schema += self::description($type->class, $field->name);
        $default = $isSent && $field->optional && $field->default !== null ? ($field->default)() : null;

        // That it may be missing says as much; generators of clients take a field with a default for one that is always there.
        return $default === null || $default === [] ? $schema : $schema + self::default($field->type, $default);
    }

    /** @return array{default?: mixed} nothing for one that JSON cannot represent, such as INF */
    public static function default(Type $type, mixed $default): array
    {
        try {
            return ['default' => $type->encode($default)];
        } catch (MismatchException) {
            return [];
        }
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
