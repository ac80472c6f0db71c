<?php

declare(strict_types=1);

namespace Weft\Bus;

use Weft\Validation\Validate;
use Weft\Validation\Violation;

/** A message failed validation, see {@see Validate}. The exception lists all violations. */
final class InvalidMessageException extends BusException implements Unrecoverable, PublicFailure
{
    /** @param non-empty-list<Violation> $violations */
    private function __construct(string $message, public readonly array $violations)
    {
        parent::__construct($message);
    }

    /** @param non-empty-list<Violation> $violations */
    public static function because(object $message, array $violations): self
    {
        return new self($message::class . ' is invalid: ' . \implode('; ', \array_map(static fn(Violation $violation): string => (string) $violation, $violations)), $violations);
    }
}
