<?php

declare(strict_types=1);

namespace Weft\Bus;

use Weft\Internal\Documented;

/** A failure while a message is sent, stored or handled. Mistakes in the program are instances of \Error instead. */
abstract class BusException extends \RuntimeException implements \Weft\Exception
{
    use Documented;

    public function __construct(string $message, ?\Throwable $previous = null)
    {
        parent::__construct($message, previous: $previous);
    }
}
