<?php

declare(strict_types=1);

namespace Weft\Bus;

/** The broker did not confirm a message. */
final class PublishException extends BusException
{
    /**
     * @param bool $refused whether the broker refuses this particular message, so that others can be published and a retry is pointless
     * @param bool $nacked  whether the broker rejects this particular message for now (basic.nack), such as for a full queue, or closes each
     *                      connection on which it is published: others can be published, and a retry may succeed
     */
    public function __construct(
        string $message,
        ?\Throwable $previous = null,
        public readonly bool $refused = false,
        public readonly bool $nacked = false,
    ) {
        parent::__construct($message, $previous);
    }
}
