<?php

declare(strict_types=1);

namespace Weft\Bus;

use Weft\Bus\Serializer\Envelope;

/** A {@see Serializer} whose messages name their type, id or trace in a way of their own, in headers or in the body. */
interface EnvelopeSerializer extends Serializer
{
    /**
     * Reads type name and headers of a received message, before the bus looks for its handler.
     *
     * @return Envelope|null with the type name, which may be a class name, and with what the format says about id, conversation and trace
     *                       under the names of {@see Header}; the body stays as it is. Null if the message is not in this format: then
     *                       the bus reads it as one of its own
     *
     * @throws MessageDecodingException when it is in this format and damaged; it is moved to the dead-letter queue with its original bytes
     */
    public function open(Envelope $received): ?Envelope;
}
