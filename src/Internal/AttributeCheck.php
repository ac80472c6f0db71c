<?php

declare(strict_types=1);

namespace Weft\Internal;

use Symfony\Component\Validator\Constraint;
use Weft\Internal\Codec\Scope;

/**
 * Detects attributes that PHP ignores: those whose class does not exist, because they are misspelt or not imported, and those of Weft whose
 * arguments or place are wrong, which PHP notices only where something instantiates them.
 *
 * @internal
 */
final class AttributeCheck
{
    private const OURS = '/^Weft\\\\(?:Bus|EventSourcing|Http|Validation)\\\\/';
    /** Names by which attributes are written where their namespace is imported, not they. */
    private const ALIASES = ['Assert', 'Bus', 'EventSourcing', 'Http', 'Validation', 'Weft'];
    private const CONSTRAINTS = 'Symfony\Component\Validator\Constraints\\';

    /**
     * @param \ReflectionClass<object>|\ReflectionFunctionAbstract|\ReflectionParameter|\ReflectionProperty $place
     * @param AttributeArea $area that reads the attributes of the place
     * @return string|null what is wrong, to stand behind the name of the place
     */
    public static function on(\ReflectionClass|\ReflectionFunctionAbstract|\ReflectionParameter|\ReflectionProperty $place, AttributeArea $area): ?string
    {
        /** @var list<\ReflectionAttribute<object>> $attributes */
        $attributes = $place->getAttributes();
        foreach ($attributes as $attribute) {
            $name = $attribute->getName();
            $problem = match (true) {
                !\class_exists($name) => self::unknown($name, $place, $area),
                \preg_match(self::OURS, $name) === 1 => self::invalid($attribute),
                default => null,
            };
            if ($problem !== null) {
                return $problem;
            }
        }

        return null;
    }

    /** @param \ReflectionClass<object>|\ReflectionFunctionAbstract|\ReflectionParameter|\ReflectionProperty $place */
    private static function unknown(string $name, \ReflectionClass|\ReflectionFunctionAbstract|\ReflectionParameter|\ReflectionProperty $place, AttributeArea $area): ?string
    {
        $isConstraint = \str_starts_with($name, self::CONSTRAINTS) && \class_exists(Constraint::class);
        $isOurs = !$isConstraint && self::isOurs($name, self::namespace($place));
        $meant = match (true) {
            $isConstraint => self::nearest($name, self::constraints()),
            $isOurs => self::nearest($name, self::fitting($place, $area)) ?? self::notImported($name),
            default => null,
        };
        // One that is near to an attribute of another place or area is refused without a hint.
        $isMistake = $meant !== null || $isConstraint || \preg_match(self::OURS, $name) === 1
            || $isOurs && self::nearest($name, AttributeArea::all()) !== null;
        if (!$isMistake) {
            return null;
        }

        return "is marked with #[{$name}], which is not a class. " . ($meant === null ? '' : "Is #[{$meant}] meant? ") . 'Check the spelling and the use statements';
    }

    /** @param \ReflectionAttribute<object> $attribute */
    private static function invalid(\ReflectionAttribute $attribute): ?string
    {
        $name = $attribute->getName();
        $parameters = \method_exists($name, '__construct') ? (new \ReflectionMethod($name, '__construct'))->getParameters() : [];
        try {
            $attribute->newInstance();
            $given = \count(\array_filter($attribute->getArguments(), \is_int(...), \ARRAY_FILTER_USE_KEY));
            $isVariadic = $parameters !== [] && $parameters[\count($parameters) - 1]->isVariadic();
            if ($given <= \count($parameters) || $isVariadic) {
                return null;
            }
            // PHP drops arguments that a constructor does not have.
            $problem = "it has $given arguments";
        } catch (\Error $error) {
            $problem = $error->getMessage();
        }
        $areArguments = !isset($error) || !$error instanceof \ValueError && \preg_match('/ cannot target | must not be repeated$/', $problem) !== 1;
        $accepted = match (true) {
            !$areArguments => '',
            $parameters === [] => '. It takes no arguments',
            default => '. Its arguments are ' . \implode(', ', \array_map(static fn(\ReflectionParameter $parameter): string => $parameter->name, $parameters)),
        };

        return "has an invalid #[{$name}]: {$problem}{$accepted}";
    }

    /** A name that is not imported resolves to the current namespace, and so does an alias. Attributes of other libraries may be missing. */
    private static function isOurs(string $attribute, string $namespace): bool
    {
        $end = \strrpos($attribute, '\\');
        $own = $end === false ? '' : \substr($attribute, 0, $end);
        $aliases = \array_map(static fn(string $alias): string => \ltrim("$namespace\\$alias", '\\'), self::ALIASES);

        return $own === $namespace || \in_array($own, $aliases, true) || \str_starts_with($own, 'Weft\\');
    }

    /** @param \ReflectionClass<object>|\ReflectionFunctionAbstract|\ReflectionParameter|\ReflectionProperty $place */
    private static function namespace(\ReflectionClass|\ReflectionFunctionAbstract|\ReflectionParameter|\ReflectionProperty $place): string
    {
        $scope = match (true) {
            $place instanceof \ReflectionClass => Scope::ofClass($place),
            $place instanceof \ReflectionProperty => Scope::ofClass($place->getDeclaringClass()),
            $place instanceof \ReflectionParameter => Scope::ofFunction($place->getDeclaringFunction()),
            default => Scope::ofFunction($place),
        };

        return $scope->namespace();
    }

    /**
     * The attributes of an area that the place can have.
     *
     * @param \ReflectionClass<object>|\ReflectionFunctionAbstract|\ReflectionParameter|\ReflectionProperty $place
     * @return list<class-string>
     */
    private static function fitting(\ReflectionClass|\ReflectionFunctionAbstract|\ReflectionParameter|\ReflectionProperty $place, AttributeArea $area): array
    {
        $target = match (true) {
            $place instanceof \ReflectionClass => \Attribute::TARGET_CLASS,
            $place instanceof \ReflectionProperty => \Attribute::TARGET_PROPERTY,
            $place instanceof \ReflectionParameter => \Attribute::TARGET_PARAMETER,
            default => \Attribute::TARGET_FUNCTION | \Attribute::TARGET_METHOD,
        };

        return \array_values(\array_filter($area->attributes(), static fn(string $class): bool => (self::targets($class) & $target) !== 0));
    }

    /**
     * Where an attribute may be.
     *
     * @param class-string $attribute
     */
    private static function targets(string $attribute): int
    {
        return (new \ReflectionClass($attribute))->getAttributes(\Attribute::class)[0]->newInstance()->flags;
    }

    /** @param list<string> $known */
    private static function nearest(string $attribute, array $known): ?string
    {
        $given = \strtolower(self::short($attribute));
        foreach ([0, 1, 2] as $distance) {
            foreach ($known as $class) {
                $name = \strtolower(self::short($class));
                $isClose = $distance < 2 || \strlen($name) > 8 || \count_chars($given, 1) === \count_chars($name, 1);
                if ($isClose && \levenshtein($given, $name) === $distance) {
                    return $class;
                }
            }
        }

        return null;
    }

    /** A constraint of symfony/validator of this very name. */
    private static function notImported(string $attribute): ?string
    {
        $class = self::CONSTRAINTS . self::short($attribute);

        return \class_exists(Constraint::class) && \class_exists($class) ? $class : null;
    }

    /** @return list<string> */
    private static function constraints(): array
    {
        $directory = \dirname((string) (new \ReflectionClass(Constraint::class))->getFileName()) . '/Constraints';
        $classes = \array_map(static fn(string $file): string => self::CONSTRAINTS . \basename($file, '.php'), \glob("$directory/*.php") ?: []);

        return \array_values(\array_filter($classes, static fn(string $class): bool => !\str_ends_with($class, 'Validator')));
    }

    private static function short(string $class): string
    {
        return \substr((string) \strrchr("\\{$class}", '\\'), 1);
    }
}
