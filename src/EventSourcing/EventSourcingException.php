<?php

declare(strict_types=1);

namespace Weft\EventSourcing;

/** Something went wrong with recorded events; mistakes in the program are \Error instead. */
abstract class EventSourcingException extends \RuntimeException implements \Weft\Exception
{
    public function __construct(string $message, ?\Throwable $previous = null)
    {
        parent::__construct($message, previous: $previous);
    }
}
