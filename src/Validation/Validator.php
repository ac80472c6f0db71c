<?php

declare(strict_types=1);

namespace Weft\Validation;

/** Validates objects, for {@see Validate}. */
interface Validator
{
    /**
     * @param list<string> $groups empty for the default group
     * @return list<Violation> empty when the message is valid
     */
    public function validate(object $message, array $groups): array;
}
