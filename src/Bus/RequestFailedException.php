<?php

declare(strict_types=1);

namespace Weft\Bus;

/** The handler of a request has failed for good, or its reply cannot be decoded or is of another class than expected. */
final class RequestFailedException extends BusException
{
    /** @param string $error class of the handler's exception, as named by its program; empty when the reply is at fault */
    public function __construct(
        string $message,
        public readonly string $error = '',
        ?\Throwable $previous = null,
    ) {
        parent::__construct($message, $previous);
    }
}
