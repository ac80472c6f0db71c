<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Validation;

use Symfony\Component\Validator\Validation;
use Symfony\Component\Validator\Validator\ValidatorInterface;
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
            $violations[] = new Violation($violation->getPropertyPath(), (string) $violation->getMessage());
        }

        return $violations;
    }
}
