<?php

declare(strict_types=1);

namespace Weft\Validation\Internal;

use Symfony\Component\Validator\Constraints as Assert;

/**
 * Constraints of symfony/validator as keywords of JSON Schema. One that JSON Schema cannot say is left out.
 *
 * @internal
 */
final class SchemaKeywords
{
    /** @return array<string, mixed> */
    public static function of(\ReflectionProperty $property): array
    {
        $keywords = [];
        foreach ($property->getAttributes() as $attribute) {
            if (\str_starts_with($attribute->getName(), 'Symfony\Component\Validator\Constraints\\') && \class_exists($attribute->getName())) {
                $keywords += self::keywords($attribute->newInstance(), (string) $property->getType());
            }
        }

        return $keywords;
    }

    /** @return array<string, mixed> */
    private static function keywords(object $rule, string $type): array
    {
        return \array_filter(match (true) {
            $rule instanceof Assert\NotBlank => \str_contains($type, 'array') ? ['minItems' => 1] : (\str_contains($type, 'string') ? ['minLength' => 1] : []),
            $rule instanceof Assert\Length => ['minLength' => $rule->min, 'maxLength' => $rule->max],
            $rule instanceof Assert\Count => ['minItems' => $rule->min, 'maxItems' => $rule->max],
            $rule instanceof Assert\Range => ['minimum' => self::number($rule->min), 'maximum' => self::number($rule->max)],
            $rule instanceof Assert\Email => ['format' => 'email'],
            $rule instanceof Assert\Url => ['format' => 'uri'],
            $rule instanceof Assert\Uuid => ['format' => 'uuid'],
            $rule instanceof Assert\Regex => ['pattern' => $rule->match ? self::pattern((string) $rule->pattern) : null],
            $rule instanceof Assert\Choice => ['enum' => $rule->choices],
            $rule instanceof Assert\Unique => ['uniqueItems' => true],
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
        return \is_int($value) || \is_float($value) ? $value : null;
    }

    /** A regular expression of ECMA-262, where PHP's means the same there. */
    private static function pattern(string $expression): ?string
    {
        $found = [];
        if (\preg_match('/^([\/~#])(.*)\1[uD]*$/s', $expression, $found) !== 1 || \preg_match('/\\\\[AzZGKQEXR]|\(\?[^:=!]|\[\[:|[*+?}]\+/', $found[2]) === 1) {
            return null;
        }

        return $found[1] === '/' ? \str_replace('\/', '/', $found[2]) : $found[2];
    }
}
