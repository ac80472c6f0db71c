<?php

declare(strict_types=1);

namespace Weft\Pool;

use Weft\Exception;
use Weft\Internal\Documented;

/** A borrow from a {@see Pool} failed. Catch a subclass for the cause. */
class PoolException extends \RuntimeException implements Exception
{
    use Documented;

    /** @param ?\Throwable $previous what the factory threw, where that is the cause */
    final public function __construct(string $message, ?\Throwable $previous = null)
    {
        parent::__construct($message, 0, $previous);
    }
}
