<?php

declare(strict_types=1);

namespace Weft\Amqp;

use Weft\Exception;
use Weft\Internal\Documented;

/** Something between this process and the broker failed. Catch a subclass for the cause. */
class AmqpException extends \RuntimeException implements Exception
{
    use Documented;

    /** @param int $code the broker's reply code where it gave one (AMQP 0-9-1 §1.3), else 0 */
    final public function __construct(string $message, int $code = 0, ?\Throwable $previous = null)
    {
        parent::__construct($message, $code, $previous);
    }
}
