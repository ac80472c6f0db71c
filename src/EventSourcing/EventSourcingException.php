<?php

declare(strict_types=1);

namespace Weft\EventSourcing;

use Weft\Internal\Documented;

/** A failure of the event store. Mistakes in the program are instances of \Error instead. */
abstract class EventSourcingException extends \RuntimeException implements \Weft\Exception
{
    use Documented;

    public function __construct(string $message, ?\Throwable $previous = null)
    {
        parent::__construct($message, previous: $previous);
    }
}
