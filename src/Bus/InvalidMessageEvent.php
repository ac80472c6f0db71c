<?php

declare(strict_types=1);

namespace Weft\Bus;

use Weft\Validation\Validate;
use Weft\Validation\Violation;

/** An event that reports an invalid message, see {@see Validate::$event}. */
interface InvalidMessageEvent
{
    public static function of(object $message, Violation ...$violations): static;
}
