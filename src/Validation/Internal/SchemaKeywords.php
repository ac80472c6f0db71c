<?php

declare(strict_types=1);

namespace Weft\Validation\Internal;

use Symfony\Component\Validator\Constraint;
use Symfony\Component\Validator\Constraints as Assert;
use Symfony\Component\Validator\Mapping\CascadingStrategy;
use Symfony\Component\Validator\Mapping\ClassMetadataInterface;
use Symfony\Component\Validator\Mapping\PropertyMetadata;
use Symfony\Component\Validator\Validator\ValidatorInterface;
use Weft\Internal\Codec\Enumeration;
use Weft\Internal\Codec\Map;
use Weft\Internal\Codec\Optional;
use Weft\Internal\Codec\Scalar;
use Weft\Internal\Codec\Sequence;
use Weft\Internal\Codec\Type;

/**
 * Constraints of symfony/validator as keywords of JSON Schema. One that JSON Schema cannot say is left out.
 *
 * @internal
 */
final class SchemaKeywords
{
    /** Keywords about the elements of an array, whose own schema they belong into. */
    private const OF_ELEMENTS = ['items', 'additionalProperties'];
    public const DEFAULT_GROUP = 'Default';

    private static ?ValidatorInterface $validator = null;

    /**
     * The schema of a property with the constraints that a validation in these groups checks.
     *
     * @param array<string, mixed> $schema
     * @param class-string $class
     * @param list<string> $groups with that of the default group
     *
     * @return array<string, mixed>
     */
    public static function added(array $schema, string $class, string $property, Type $type, array $groups): array
    {
        $keywords = self::of($class, $property, $type, $groups);
        foreach (self::OF_ELEMENTS as $name) {
            if (isset($keywords[$name])) {
                $keywords[$name] = (array) ($schema[$name] ?? []) + $keywords[$name];
                unset($schema[$name]);
            }
        }

        return $schema + $keywords;
    }

    /**
     * @param class-string $class
     * @param list<string> $groups with that of the default group
     *
     * @return array<string, mixed>
     */
    public static function of(string $class, string $property, Type $type, array $groups): array
    {
        $metadata = self::metadata($class);
        if ($metadata === null) {
            return [];
        }
        $keywords = [];
        foreach (self::effective($metadata, $groups) as $group) {
            foreach (self::members($metadata, $property) as $member) {
                foreach ($member->findConstraints($group) as $rule) {
                    $keywords += self::keywords($rule, $type);
                }
            }
        }

        return $keywords;
    }

    /**
     * The groups in which a validation of the class in these groups validates the objects in a property.
     *
     * @param class-string $class
     * @param list<string> $groups with that of the default group
     *
     * @return list<string>|null null if it does not validate them: the property has no `#[Assert\Valid]`
     */
    public static function nestedGroups(string $class, string $property, array $groups): ?array
    {
        $metadata = self::metadata($class);
        if ($metadata === null) {
            return null;
        }
        $nested = [];
        foreach (self::members($metadata, $property) as $member) {
            if (($member->getCascadingStrategy() & CascadingStrategy::CASCADE) !== 0) {
                return $groups;
            }
            foreach (self::effective($metadata, $groups) as $group) {
                $isValid = static fn(Constraint $rule): bool => $rule instanceof Assert\Valid;
                $nested = \array_filter($member->findConstraints($group), $isValid) === [] ? $nested : [...$nested, $group];
            }
        }

        return $nested === [] ? null : $nested;
    }

    /** @param class-string $class */
    private static function metadata(string $class): ?ClassMetadataInterface
    {
        if (!SymfonyValidator::isInstalled()) {
            return null;
        }
        self::$validator ??= SymfonyValidator::ofAttributes();
        $metadata = self::$validator->getMetadataFor($class);

        return $metadata instanceof ClassMetadataInterface ? $metadata : null;
    }

    /** @return list<PropertyMetadata> without the constraints of getters, which are about another value */
    private static function members(ClassMetadataInterface $metadata, string $property): array
    {
        $members = [];
        foreach ($metadata->getPropertyMetadata($property) as $member) {
            if ($member instanceof PropertyMetadata) {
                $members[] = $member;
            }
        }

        return $members;
    }

    /**
     * @param list<string> $groups
     *
     * @return list<string> those of the class's group sequence for the default group; nothing for it if each object has a sequence of its own
     */
    private static function effective(ClassMetadataInterface $metadata, array $groups): array
    {
        $effective = [];
        foreach ($groups as $group) {
            if ($group !== self::DEFAULT_GROUP || !$metadata->hasGroupSequence() && !$metadata->isGroupSequenceProvider()) {
                $effective[] = $group;
                continue;
            }
            $steps = $metadata->hasGroupSequence() ? $metadata->getGroupSequence()->groups ?? [] : [];
            \array_walk_recursive($steps, static function (string $step) use (&$effective): void {
                $effective[] = $step;
            });
        }

        return $effective;
    }

    /** @return array<string, mixed> */
    private static function keywords(Constraint $rule, Type $declared): array
    {
        $type = $declared instanceof Optional ? $declared->inner : $declared;
        [$fewest, $most] = $type instanceof Map ? ['minProperties', 'maxProperties'] : ['minItems', 'maxItems'];

        return \array_filter(match (true) {
            $rule instanceof Assert\NotBlank => $type === Scalar::Text ? ['minLength' => 1] : ($type instanceof Sequence || $type instanceof Map ? [$fewest => 1] : []),
            $rule instanceof Assert\Length => ['minLength' => $rule->min, 'maxLength' => $rule->max],
            $rule instanceof Assert\Count => [$fewest => $rule->min, $most => $rule->max],
            $rule instanceof Assert\Range => ['minimum' => self::number($rule->min), 'maximum' => self::number($rule->max)],
            $rule instanceof Assert\Email => ['format' => 'email'],
            $rule instanceof Assert\Url => ['format' => 'uri'],
            $rule instanceof Assert\Uuid => ['format' => 'uuid'],
            $rule instanceof Assert\Regex => ['pattern' => $rule->match ? self::pattern((string) $rule->pattern) : null],
            $rule instanceof Assert\Choice && !$rule->multiple => self::choices($rule, $declared instanceof Optional),
            $rule instanceof Assert\Choice => [$type instanceof Map ? 'additionalProperties' : 'items' => self::choices($rule, false) ?: null, $fewest => $rule->min, $most => $rule->max],
            $rule instanceof Assert\Unique => ['uniqueItems' => $type instanceof Sequence && self::isComparedByValue($type->item) ? true : null],
            // The next four include Positive, Negative and theirs with zero.
            $rule instanceof Assert\GreaterThanOrEqual => ['minimum' => self::number($rule->value)],
            $rule instanceof Assert\GreaterThan => ['exclusiveMinimum' => self::number($rule->value)],
            $rule instanceof Assert\LessThanOrEqual => ['maximum' => self::number($rule->value)],
            $rule instanceof Assert\LessThan => ['exclusiveMaximum' => self::number($rule->value)],
            default => [],
        }, static fn(mixed $value): bool => $value !== null);
    }

    private static function number(mixed $value): int|float|null
    {
        return \is_int($value) || \is_float($value) && \is_finite($value) ? $value : null;
    }

    /** @return array<string, mixed> nothing where a choice has no JSON */
    private static function choices(Assert\Choice $rule, bool $isNullable): array
    {
        // Null passes, which `enum` has to say.
        $choices = [...\array_values($rule->choices ?? []), ...($isNullable ? [null] : [])];
        foreach ($choices as $choice) {
            if (\is_object($choice) && !$choice instanceof \BackedEnum || \json_encode($choice) === false) {
                return [];
            }
        }
        if (($rule->choices ?? []) === [] || $rule->callback !== null) {
            return [];
        }

        return ($rule->match ?? true) ? ['enum' => $choices] : ['not' => ['enum' => \array_values($rule->choices)]];
    }

    /** Objects of classes are never the same to symfony/validator, times neither. */
    private static function isComparedByValue(Type $type): bool
    {
        $type = $type instanceof Optional ? $type->inner : $type;

        return $type instanceof Scalar || $type instanceof Enumeration;
    }

    /** A regular expression of PHP, with its delimiters, as one of ECMA-262. */
    private static function pattern(string $expression): ?string
    {
        $found = [];
        if (\preg_match('/^([\/~#])(.*)\1[uD]*$/s', $expression, $found) !== 1) {
            return null;
        }

        return self::expression($found[1] === '/' ? \str_replace('\/', '/', $found[2]) : $found[2]);
    }

    /** A regular expression of PHP, without delimiters, where it means the same in ECMA-262; otherwise null. */
    public static function expression(string $expression): ?string
    {
        // Escapes, groups and verbs that are PHP's own, character classes such as [:alpha:] and []a], possessive quantifiers.
        $foreign = '/\\\\[AzZGKQEXRhHNvVCaeogx]|\(\?[^:=!]|\(\*|\[:\^?\w+:\]|\[\^?\]|[*+?}]\+/';

        return \preg_match($foreign, $expression) === 1 ? null : $expression;
    }
}
