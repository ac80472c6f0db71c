<?php

declare(strict_types=1);

namespace Weft\Bus;

/** Something went wrong on the way of a message; mistakes in the program are \Error instead. */
abstract class BusException extends \RuntimeException implements \Weft\Exception
{
    public function __construct(string $message, ?\Throwable $previous = null)
    {
        parent::__construct($message, previous: $previous);
    }
}
