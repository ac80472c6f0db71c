<?php

declare(strict_types=1);

namespace Weft\CloudEvents;

use Weft\Exception;
use Weft\Internal\Documented;

/** A message is not a CloudEvent, or a malformed one; or its data does not match a class. */
final class InvalidCloudEventException extends \RuntimeException implements Exception
{
    use Documented;

    /** @param CloudEvent|null $event whose data does not match a class; null for a message that is not a CloudEvent, or a malformed one */
    public function __construct(string $message, public readonly ?CloudEvent $event = null, ?\Throwable $previous = null)
    {
        parent::__construct($message, 0, $previous);
    }
}
