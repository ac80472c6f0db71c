<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Serializing;

use Weft\Bus\EnvelopeSerializer;
use Weft\Bus\Header;
use Weft\Bus\Internal\Codec\Codec;
use Weft\Bus\MessageDecodingException;
use Weft\Bus\Serializer;
use Weft\Bus\Serializer\Envelope;
use Weft\Bus\Transport\Delivery;

/**
 * Recognises the formats of a queue: which of them a delivery is in, and what type, id and trace it has.
 *
 * @internal
 */
final class DeliveryOpener
{
    /** @param non-empty-list<Serializer> $formats tried in this order */
    public function __construct(
        private readonly array $formats,
        private readonly Codec $codec,
    ) {}

    /** The delivery with the bus's headers, or as it is if no format of the queue fits. Its body stays the original. */
    public function open(Delivery $delivery): Delivery
    {
        if (isset($delivery->headers[Header::CLAIM])) {
            // The body is in a store; type and headers are the bus's own.
            return $delivery;
        }
        $received = new Envelope($delivery->type, $delivery->body, $delivery->headers);
        foreach ($this->formats as $format) {
            try {
                $opened = $format instanceof EnvelopeSerializer ? $format->open($received) : self::matching($format, $received);
            } catch (\Throwable $thrown) {
                return $delivery->unreadable($thrown instanceof MessageDecodingException ? $thrown : MessageDecodingException::because("\"{$delivery->type}\"", "{$thrown->getMessage()}", $thrown));
            }
            if ($opened !== null) {
                return $delivery->openedBy($format, $this->typeName($opened->type), $opened->headers);
            }
        }

        return $delivery;
    }

    private static function matching(Serializer $format, Envelope $received): ?Envelope
    {
        $type = $received->header(Header::CONTENT_TYPE);

        return $type !== null && MediaType::of($type) === MediaType::of($format->contentType()) ? $received : null;
    }

    /** Formats may name the class. Only registered classes are found: a message never loads one. */
    private function typeName(string $name): string
    {
        return $this->codec->ofType($name) === null ? $this->codec->ofClass(\ltrim($name, '\\'))?->type ?? $name : $name;
    }
}
