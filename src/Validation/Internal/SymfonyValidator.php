<?php

declare(strict_types=1);

namespace Weft\Validation\Internal;

use Symfony\Component\Validator\Validation;
use Symfony\Component\Validator\Validator\ValidatorInterface;
use Weft\Validation\Validator;
use Weft\Validation\Violation;

/**
 * Validates with symfony/validator and the constraint attributes of the class.
 *
 * @internal
 */
final class SymfonyValidator implements Validator
{
    private readonly ValidatorInterface $validator;

    /** @param (\Closure(\ReflectionProperty): bool)|null $isSecret whether no message may show the value of a property */
    public function __construct(private readonly ?\Closure $isSecret = null)
    {
        $this->validator = self::ofAttributes();
    }

    /** The validator of Symfony that reads the attributes of classes. */
    public static function ofAttributes(): ValidatorInterface
    {
        $builder = Validation::createValidatorBuilder();
        // Before version 6.4 the loader of annotations also reads attributes.
        \method_exists($builder, 'enableAttributeMapping') ? $builder->enableAttributeMapping() : $builder->enableAnnotationMapping(true);

        return $builder->getValidator();
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
            $violations[] = new Violation($path, $this->isSecret !== null && self::leadsToSecret($message, $path, $this->isSecret) ? $violation->getMessageTemplate() : (string) $violation->getMessage());
        }

        return $violations;
    }

    /**
     * Whether a property on the path is secret, or the path cannot be resolved.
     *
     * @param \Closure(\ReflectionProperty): bool $isSecret
     */
    private static function leadsToSecret(mixed $value, string $path, \Closure $isSecret): bool
    {
        foreach (PropertyPath::segments($path) as $name) {
            if (\is_array($value)) {
                $value = $value[$name] ?? null;
                continue;
            }
            if (!\is_object($value) || !\property_exists($value, $name)) {
                return true;
            }
            $property = new \ReflectionProperty($value, $name);
            if ($isSecret($property)) {
                return true;
            }
            $value = $property->isInitialized($value) ? $property->getValue($value) : null;
        }

        return false;
    }
}
