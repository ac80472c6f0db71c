<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Validation;

use Symfony\Component\Validator\Validation;
use Symfony\Component\Validator\Validator\ValidatorInterface;
use Weft\Bus\Encrypted;
use Weft\Bus\Validator;
use Weft\Bus\Violation;

/**
 * Constraints of symfony/validator, as attributes of the message class.
 *
 * @internal
 */
final class SymfonyValidator implements Validator
{
    private readonly ValidatorInterface $validator;

    public function __construct()
    {
        $builder = Validation::createValidatorBuilder();
        // Before 6.4 attributes are read by what also reads annotations.
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
            // A message may quote the value, and violations are written down.
            $violations[] = new Violation($path, self::isSecret($message, $path) ? $violation->getMessageTemplate() : (string) $violation->getMessage());
        }

        return $violations;
    }

    /** Whether a property on the way is encrypted, or where the way cannot be followed. */
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
