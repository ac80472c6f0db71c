<?php

declare(strict_types=1);

namespace Weft\Bus;

/** The handler of a request has failed for good, or its reply cannot be read here. */
final class RequestFailed extends BusException
{
    /** @param string $error class of what the handler threw, in the words of its program; empty when the reply is at fault */
    public function __construct(
        string $message,
        public readonly string $error = '',
        ?\Throwable $previous = null,
    ) {
        parent::__construct($message, $previous);
    }
}
