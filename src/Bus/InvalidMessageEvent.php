<?php

declare(strict_types=1);

namespace Weft\Bus;

/** An event that says that a message was invalid, see {@see Validate}. */
interface InvalidMessageEvent
{
    public static function of(object $message, Violation ...$violations): static;
}
