<?php

declare(strict_types=1);

namespace Weft\Bus\Internal;

use Weft\Bus\Context;
use Weft\Bus\Header;
use Weft\Bus\Internal\Codec\Codec;
use Weft\Bus\Transport\Outgoing;

use function Weft\Native\messageId;
use function Weft\Native\traceparent;

/**
 * Encodes messages and gives them their headers.
 *
 * @internal
 */
final class Envelopes
{
    public function __construct(private readonly Codec $codec) {}

    /** @param Context|null $cause the handling that sends the message; null when it starts a conversation */
    public function wrap(Kind $kind, object $message, ?Context $cause): Outgoing
    {
        $class = $this->codec->of($message::class);
        $id = messageId();
        $headers = [
            Header::MESSAGE_ID => $id,
            Header::CORRELATION_ID => $cause?->correlationId() ?? $id,
            Header::TRACEPARENT => $cause?->traceparent() ?? traceparent(),
            Header::CONTENT_TYPE => 'application/json',
            Header::SCHEMA_VERSION => (string) $class->version,
            Header::KIND => $kind->value,
        ];
        if ($cause !== null) {
            $headers[Header::CAUSATION_ID] = $cause->messageId();
            if (($state = $cause->header(Header::TRACESTATE)) !== null) {
                $headers[Header::TRACESTATE] = $state;
            }
        }

        return new Outgoing($class->type, $class->encode($message), $headers, mustRoute: $kind === Kind::Command);
    }
}
