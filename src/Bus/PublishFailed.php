<?php

declare(strict_types=1);

namespace Weft\Bus;

/** The broker did not take responsibility for a message. */
final class PublishFailed extends BusException
{
    /** @param bool $refused whether it is the message that cannot be taken, so that others can and trying again is of no use */
    public function __construct(
        string $message,
        ?\Throwable $previous = null,
        public readonly bool $refused = false,
    ) {
        parent::__construct($message, $previous);
    }
}
