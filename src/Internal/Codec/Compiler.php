<?php

declare(strict_types=1);

namespace Weft\Internal\Codec;

/**
 * Analyses classes once and compiles their codecs.
 *
 * @internal
 */
final class Compiler
{
    /** @var array<class-string, ClassCodec> */
    private array $shapes = [];

    /** @var array<class-string, true> classes whose properties are being looked at, so that recursion ends */
    private array $seen = [];

    /**
     * @param bool $mapsTakeLists whether an array with the keys of a list may be a map: in JSON it was an object or a list
     * @param bool $objectsTakeLists the same for objects of classes
     * @param 'encoded'|'decoded' $failed how errors say what a class is not fit for
     * @param bool $keepsUninitialized whether objects may have properties without a value
     */
    public function __construct(
        private readonly ?PropertyRules $rules = null,
        private readonly bool $mapsTakeLists = true,
        private readonly bool $objectsTakeLists = false,
        private readonly string $failed = 'encoded',
        private readonly bool $keepsUninitialized = false,
    ) {}

    /**
     * @param class-string $class
     * @throws UnsupportedClassException
     */
    public function shape(string $class): ClassCodec
    {
        try {
            return $this->shapes[$class] ??= $this->compile($class);
        } catch (UnsupportedClassException $unsupported) {
            // Otherwise the next that contains it would take it for one that is fine.
            unset($this->seen[$class]);
            throw $unsupported;
        }
    }

    /**
     * The type of a parameter of a function, with the elements of an array as `@param` documents them.
     *
     * @throws UnsupportedTypeException
     */
    public function parameter(\ReflectionParameter $parameter): Type
    {
        $function = $parameter->getDeclaringFunction();
        $documented = self::documentedBy((string) $function->getDocComment(), '@(?:phpstan-|psalm-)?param\s+', '\s+\$' . $parameter->name . '\b');

        return $this->type($parameter->getType(), $documented, Scope::ofFunction($function));
    }

    /**
     * The type that a function returns, with the elements of an array as `@return` documents them.
     *
     * @throws UnsupportedTypeException
     */
    public function returned(\ReflectionFunctionAbstract $function): Type
    {
        $documented = self::documentedBy((string) $function->getDocComment(), '@(?:phpstan-|psalm-)?return\s+', '');

        return $this->type($function->getReturnType(), $documented, Scope::ofFunction($function));
    }

    /** @param class-string $class */
    private function compile(string $class): ClassCodec
    {
        $reflection = $this->reflect($class);
        $this->seen[$class] = true;
        $fields = [];
        foreach (self::lineage($reflection) as $ancestor) {
            $fields[$ancestor->name] = $this->fields($class, $ancestor);
        }
        self::refuseShadowing($class, $fields);

        return new ClassCodec($reflection, $fields, $this->keepsUninitialized);
    }

    private function reflect(string $class): \ReflectionClass
    {
        if (!\class_exists($class) && !\interface_exists($class)) {
            throw UnsupportedClassException::missing($class);
        }
        $reflection = new \ReflectionClass($class);
        $problem = match (true) {
            $reflection->isInterface() => 'it is an interface, which cannot be instantiated',
            $reflection->isEnum() => 'it is an enum; an enum can only be a property',
            $reflection->isAbstract() => 'it is abstract and cannot be instantiated',
            $reflection->isAnonymous() => 'it is an anonymous class and has no type name',
            $reflection->isInternal() => 'it is an internal class of PHP',
            $reflection->hasMethod('__destruct') => 'it has a destructor',
            ($unknown = $this->rules?->problem($reflection)) !== null => "it {$unknown}",
            default => null,
        };

        return $problem === null ? $reflection : throw new UnsupportedClassException($class, $problem);
    }

    /** @return list<\ReflectionClass<object>> the class, its parent, and so on */
    private static function lineage(\ReflectionClass $class): array
    {
        $lineage = [];
        for ($ancestor = $class; $ancestor !== false; $ancestor = $ancestor->getParentClass()) {
            $lineage[] = $ancestor->isInternal()
                ? throw new UnsupportedClassException($class->name, "it extends {$ancestor->name}, an internal class of PHP")
                : $ancestor;
        }

        return $lineage;
    }

    /** @return list<Field> the properties that this very class declares */
    private function fields(string $class, \ReflectionClass $declaring): array
    {
        $fields = [];
        foreach ($declaring->getProperties() as $property) {
            if ($property->class === $declaring->name && !self::isSkipped($property)) {
                $fields[] = $this->field($class, $property);
            }
        }

        return $fields;
    }

    private static function isSkipped(\ReflectionProperty $property): bool
    {
        // A virtual property (PHP 8.4) is computed and stores nothing.
        return $property->isStatic() || (\method_exists($property, 'isVirtual') && $property->isVirtual());
    }

    private function field(string $class, \ReflectionProperty $property): Field
    {
        $parameter = self::promoted($property);
        if (($unknown = $this->rules?->problem($property)) !== null) {
            throw UnsupportedClassException::property($class, $property->name, $unknown);
        }
        try {
            $type = $this->type($property->getType(), self::documented($property, $parameter), Scope::ofClass($property->getDeclaringClass()));
            $type = $this->rules?->type($property, $type) ?? $type;
        } catch (UnsupportedTypeException $unsupported) {
            $constructor = $parameter === null ? '' : ", or with @param list<T> \${$property->name} at its constructor";
            $advice = "@var list<T> or array<string, T> at {$property->class}::\${$property->name}{$constructor}";
            throw UnsupportedClassException::property($class, $property->name, $unsupported->withAdvice($advice));
        }
        $default = $parameter?->isDefaultValueAvailable() ? static fn(): mixed => $parameter->getDefaultValue() : null;

        return new Field($property->name, $type, $property->hasDefaultValue() || $default !== null, $default);
    }

    private static function promoted(\ReflectionProperty $property): ?\ReflectionParameter
    {
        if (!$property->isPromoted()) {
            return null;
        }
        foreach ($property->getDeclaringClass()->getConstructor()?->getParameters() ?? [] as $parameter) {
            if ($parameter->name === $property->name && $parameter->isPromoted()) {
                return $parameter;
            }
        }

        return null;
    }

    private function type(?\ReflectionType $type, ?string $documented, Scope $scope): Type
    {
        if ($type === null) {
            throw new UnsupportedTypeException('has no type');
        }
        if (!$type instanceof \ReflectionNamedType) {
            throw new UnsupportedTypeException("has the type {$type}; of union types only ?T is supported");
        }
        $inner = $type->getName() === 'array'
            ? $this->collection($documented, $scope)
            : $this->named($type->getName(), $scope);

        return $type->allowsNull() && !$inner instanceof MixedType && !$inner instanceof Optional ? new Optional($inner) : $inner;
    }

    private function named(string $name, Scope $scope): Type
    {
        return match (\strtolower($name)) {
            'string', 'non-empty-string' => Scalar::Text,
            'int', 'positive-int', 'non-negative-int' => Scalar::Int,
            'float' => Scalar::Float,
            'bool' => Scalar::Bool,
            'mixed' => new MixedType(),
            'self', 'static' => $this->instance((string) $scope->class),
            'parent' => $this->instance((string) $scope->parent),
            'datetimeimmutable', 'datetimeinterface' => new DateTime(),
            'datetime' => throw new UnsupportedTypeException('is a mutable DateTime; use DateTimeImmutable'),
            'array' => throw new UnsupportedTypeException('is or contains a plain array', needsElements: true),
            'closure', 'callable', 'iterable', 'object', 'resource', 'null', 'false', 'true', 'never', 'void'
                => throw new UnsupportedTypeException("has the type {$name}, which cannot be encoded as JSON and decoded again"),
            default => \enum_exists($name) ? self::enumeration($name) : $this->instance($name),
        };
    }

    private static function enumeration(string $enum): Enumeration
    {
        return \is_subclass_of($enum, \BackedEnum::class)
            ? new Enumeration($enum)
            : throw new UnsupportedTypeException("has the enum {$enum}, which is not backed");
    }

    private function instance(string $class): Instance
    {
        try {
            // Resolved now, so that a mistake in a nested class is reported at registration.
            if (!isset($this->seen[$class])) {
                $this->shape($class);
            }
        } catch (UnsupportedClassException $invalid) {
            throw new UnsupportedTypeException("contains {$invalid->nested($this->failed)}");
        }

        return new Instance($class, $this, $this->objectsTakeLists);
    }

    private function collection(?string $documented, Scope $scope): Type
    {
        return $documented === null
            ? throw new UnsupportedTypeException('is a plain array', needsElements: true)
            : $this->docType(\trim($documented), $scope);
    }

    private function docType(string $text, Scope $scope): Type
    {
        $nullable = \preg_match('/^\?(.+)$|^(.+?)\s*\|\s*null$|^null\s*\|\s*(.+)$/si', $text, $part) === 1;
        $text = $nullable ? \trim($part[1] . ($part[2] ?? '') . ($part[3] ?? '')) : $text;
        $type = match (true) {
            \preg_match('/^(?:non-empty-)?list<(.+)>$/si', $text, $part) === 1,
            \preg_match('/^([^<>]+)\[\]$/s', $text, $part) === 1 => new Sequence($this->docType(\trim($part[1]), $scope)),
            \preg_match('/^array<\s*(string|int)\s*,(.+)>$/si', $text, $part) === 1
                => new Map($this->docType(\trim($part[2]), $scope), \strtolower($part[1]) === 'int', $this->mapsTakeLists),
            \preg_match('/^\\\\?[a-z_][\w\\\\-]*$/i', $text) === 1 => $this->named(Imports::resolve($text, $scope), $scope),
            default => throw new UnsupportedTypeException("is documented as {$text}; supported are list<T>, T[], array<string, T> and array<int, T>"),
        };

        return $nullable ? new Optional($type) : $type;
    }

    /** The element type of an array from @var, or @param of a promoted parameter. */
    private static function documented(\ReflectionProperty $property, ?\ReflectionParameter $parameter): ?string
    {
        return self::documentedBy((string) $property->getDocComment(), '@(?:phpstan-|psalm-)?var\s+', '')
            ?? ($parameter === null ? null : self::documentedBy((string) $parameter->getDeclaringFunction()->getDocComment(), '@(?:phpstan-|psalm-)?param\s+', '\s+\$' . $property->name . '\b'));
    }

    private static function documentedBy(string $comment, string $tag, string $behind): ?string
    {
        $part = [];

        return \preg_match("/{$tag}(" . self::DOC_TYPE . "){$behind}/", self::flattened($comment), $part) === 1 ? $part[1] : null;
    }

    /** A type expression: names, and angle brackets with anything balanced between them. */
    private const DOC_TYPE = '\??[\w\\\\-]+(?<angle><(?:[^<>]++|(?&angle))*>)?(?:\[\])?(?:\s*\|\s*null)?';

    private static function flattened(string $comment): string
    {
        return (string) \preg_replace('/\s*\n\s*\*?\s*/', ' ', $comment);
    }

    /** @param array<class-string, list<Field>> $fieldsByClass */
    private static function refuseShadowing(string $class, array $fieldsByClass): void
    {
        $owner = [];
        foreach ($fieldsByClass as $declaring => $fields) {
            foreach ($fields as $field) {
                if (isset($owner[$field->name])) {
                    $reason = "is private in {$declaring} and declared again in {$owner[$field->name]}";
                    throw UnsupportedClassException::property($class, $field->name, $reason);
                }
                $owner[$field->name] = $declaring;
            }
        }
    }
}
