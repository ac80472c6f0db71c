<?php

declare(strict_types=1);

namespace Weft\Lock;

use Weft\Internal\Documented;

/** A lock could not be acquired, or was lost. */
abstract class LockException extends \RuntimeException implements \Weft\Exception
{
    use Documented;

    /** @param string $name of the lock */
    public function __construct(string $message, public readonly string $name, ?\Throwable $previous = null)
    {
        parent::__construct($message, previous: $previous);
    }
}
