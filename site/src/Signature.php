<?php

declare(strict_types=1);

namespace Weft\Site;

/** Reads constructors and writes declarations as PHP code. */
final class Signature
{
    /**
     * The parameters with a default of the constructor that the class declares, if it is public. Generated messages of Protocol Buffers have fields, not options.
     *
     * @param \ReflectionClass<object> $class
     *
     * @return list<\ReflectionParameter>
     */
    public static function options(\ReflectionClass $class): array
    {
        $constructor = $class->getConstructor();
        if ($constructor === null || $constructor->class !== $class->getName() || !self::isShown($constructor) || self::isGenerated($class)) {
            return [];
        }

        return \array_values(\array_filter($constructor->getParameters(), static fn(\ReflectionParameter $parameter): bool => $parameter->isDefaultValueAvailable()));
    }

    /** @param \ReflectionClass<object> $class */
    public static function isGenerated(\ReflectionClass $class): bool
    {
        return \is_subclass_of($class->getName(), \Weft\Protobuf\Message::class) || \str_starts_with((string) \file_get_contents((string) $class->getFileName(), false, null, 0, 200), "<?php\n\n// Generated");
    }

    /** Public methods that are called, and the protected ones of a trait, which the class that uses it calls. */
    public static function isShown(\ReflectionMethod $method): bool
    {
        return $method->getName() !== '__destruct' && ($method->isPublic() || $method->isProtected() && $method->getDeclaringClass()->isTrait()) && !DocBlock::of($method->getDocComment())->isInternal();
    }

    /** @param \ReflectionClass<object> $class */
    public static function ofClass(\ReflectionClass $class): string
    {
        $words = [];
        if ($class->isEnum()) {
            $backing = (new \ReflectionEnum($class->getName()))->getBackingType();
            $words[] = 'enum ' . $class->getShortName() . ($backing === null ? '' : ": $backing");
        } else {
            $words[] = $class->isInterface() ? 'interface' : \implode(' ', [...\Reflection::getModifierNames($class->getModifiers()), 'class']);
            $words[] = $class->getShortName();
        }
        $parent = $class->getParentClass();
        $parent === false || $words[] = 'extends ' . self::short($parent->getName(), $class->getNamespaceName());
        $interfaces = \array_diff($class->getInterfaceNames(), $parent === false ? [] : $parent->getInterfaceNames(), ['UnitEnum', 'BackedEnum', 'Stringable', 'Throwable']);
        if ($interfaces !== []) {
            $names = \array_map(static fn(string $name): string => self::short($name, $class->getNamespaceName()), $interfaces);
            $words[] = ($class->isInterface() ? 'extends ' : 'implements ') . \implode(', ', $names);
        }

        return \implode(' ', \array_filter($words));
    }

    public static function ofFunction(\ReflectionFunctionAbstract $function, string $namespace): string
    {
        $head = $function instanceof \ReflectionMethod ? \implode(' ', \Reflection::getModifierNames($function->getModifiers() & ~\ReflectionMethod::IS_FINAL)) . ' ' : '';
        $parameters = \array_map(static fn(\ReflectionParameter $parameter): string => self::parameter($parameter, $namespace), $function->getParameters());
        $type = $function->getReturnType();
        $line = "{$head}function {$function->getShortName()}(" . \implode(', ', $parameters) . ')';
        if (\strlen($line) > 90) {
            $line = "{$head}function {$function->getShortName()}(\n    " . \implode(",\n    ", $parameters) . ",\n)";
        }

        return $line . ($type === null ? '' : ': ' . self::type($type, $namespace));
    }

    public static function type(?\ReflectionType $type, string $namespace): string
    {
        return (string) \preg_replace_callback('/[\w\\\\]+/', static fn(array $name): string => self::short($name[0], $namespace), (string) $type);
    }

    /** The default value as PHP code; numbers with separators. */
    public static function default(\ReflectionParameter $parameter): string
    {
        $constant = $parameter->isDefaultValueConstant() ? (string) $parameter->getDefaultValueConstantName() : '';
        $value = $parameter->getDefaultValue();
        if ($value instanceof \UnitEnum) {
            return (new \ReflectionClass($value))->getShortName() . "::{$value->name}";
        }

        return match (true) {
            \is_object($value) => 'new ' . (new \ReflectionClass($value))->getShortName() . '()',
            \is_int($value) && $constant === '' => self::integer($value),
            \is_array($value) => $value === [] ? '[]' : (string) \json_encode($value),
            \is_float($value) => (string) \json_encode($value, \JSON_PRESERVE_ZERO_FRACTION),
            $value === null => 'null',
            \is_bool($value) => $value ? 'true' : 'false',
            $constant !== '' && \is_string($value) => self::short($constant, '') . " (`$value`)",
            default => \var_export($value, true),
        };
    }

    /** `10_000`; sizes as `100 << 20`, of which the table says MiB. */
    private static function integer(int $value): string
    {
        return $value >= 1 << 20 && $value % (1 << 20) === 0 ? ($value >> 20) . ' << 20' : \number_format($value, 0, '', '_');
    }

    private static function parameter(\ReflectionParameter $parameter, string $namespace): string
    {
        $type = self::type($parameter->getType(), $namespace);

        return ($type === '' ? '' : "$type ")
            . ($parameter->isPassedByReference() ? '&' : '') . ($parameter->isVariadic() ? '...' : '') . "\${$parameter->getName()}"
            . ($parameter->isDefaultValueAvailable() ? ' = ' . \explode(' (`', self::default($parameter))[0] : '');
    }

    /** The name as code in the namespace would write it after an import: the last part. */
    private static function short(string $name, string $namespace): string
    {
        return \str_contains($name, '\\') ? \substr((string) \strrchr($name, '\\'), 1) : $name;
    }
}
