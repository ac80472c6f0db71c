<?php

declare(strict_types=1);

namespace Weft\Bus;

/** An event that says that a message was invalid, see {@see Validate}. */
interface FailureEvent
{
    public static function of(object $message, Violation ...$violations): static;
}
