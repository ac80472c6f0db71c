<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Validation;

use Symfony\Component\Validator\Validation;
use Symfony\Component\Validator\Validator\ValidatorInterface;
use Weft\Bus\Encrypted;
use Weft\Bus\Validator;
use Weft\Bus\Violation;

/**
 * Validates with symfony/validator and the constraint attributes of the message class.
 *
 * @internal
 */
final class SymfonyValidator implements Validator
{
    private readonly ValidatorInterface $validator;

    public function __construct()
    {
        $builder = Validation::createValidatorBuilder();
        // Before version 6.4 the loader of annotations also reads attributes.
        \method_exists($builder, 'enableAttributeMapping') ? $builder->enableAttributeMapping() : $builder->enableAnnotationMapping(true);
        $this->validator = $builder->getValidator();
    }

    public static function isInstalled(): bool
    {
        return \class_exists(Validation::class);
    }

    public function validate(object $message, array $groups): array
    {
        $violations = [];
        foreach ($this->validator->validate($message, null, $groups === [] ? null : $groups) as $violation) {
            $path = $violation->getPropertyPath();
            // The message of a violation may contain the value, and violations are stored.
            $violations[] = new Violation($path, self::isSecret($message, $path) ? $violation->getMessageTemplate() : (string) $violation->getMessage());
        }

        return $violations;
    }

    /** Whether a property on the path is encrypted, or the path cannot be resolved. */
    private static function isSecret(mixed $value, string $path): bool
    {
        foreach (\preg_split('/[.\[\]]+/', $path, flags: \PREG_SPLIT_NO_EMPTY) ?: [] as $name) {
            if (\is_array($value)) {
                $value = $value[$name] ?? null;
                continue;
            }
            if (!\is_object($value) || !\property_exists($value, $name)) {
                return true;
            }
            $property = new \ReflectionProperty($value, $name);
            if ($property->getAttributes(Encrypted::class) !== []) {
                return true;
            }
            $value = $property->isInitialized($value) ? $property->getValue($value) : null;
        }

        return false;
    }
}
