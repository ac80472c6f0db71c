<?php

declare(strict_types=1);

namespace Weft\Bus;

/** Says what is wrong with messages; for {@see Validate}. */
interface Validator
{
    /**
     * @param list<string> $groups empty for the default
     * @return list<Violation> empty when it is valid
     */
    public function validate(object $message, array $groups): array;
}
