<?php

declare(strict_types=1);

namespace Weft\Bus\Serializer;

use Weft\Bus\EnvelopeSerializer;
use Weft\Bus\Header;
use Weft\Bus\Serializer;

/**
 * Another format whose senders and receivers use headers of their own, in both directions.
 *
 * ```php
 * new HeaderMapping(
 *     new Json(),
 *     type: 'event_name',
 *     types: ['order_placed' => OrderPlaced::class],
 *     headers: [Header::MESSAGE_ID => 'x-request-id', Header::CORRELATION_ID => 'x-conversation'],
 * )
 * ```
 */
final class HeaderMapping implements EnvelopeSerializer
{
    /** @var array<class-string, string> */
    private readonly array $names;

    /**
     * @param Serializer                  $serializer of the bodies
     * @param string|null                 $type       the header with the type name; null where AMQP's property `type` or the routing key is
     *                                                the type name
     * @param array<string, class-string> $types      classes by their foreign type names; others have the same name in both programs
     * @param array<string, string>       $headers    foreign names by names of {@see Header}
     */
    public function __construct(
        private readonly Serializer $serializer,
        private readonly ?string $type = null,
        private readonly array $types = [],
        private readonly array $headers = [],
    ) {
        $this->names = \array_flip($types);
    }

    public function contentType(): string
    {
        return $this->serializer->contentType();
    }

    public function encode(object $message, Envelope $envelope, Normalizer $normalizer): Envelope
    {
        $type = $this->names[$message::class] ?? $envelope->type;
        $encoded = $this->serializer->encode($message, $envelope->with(type: $type), $normalizer);
        $headers = $this->type === null ? [] : [$this->type => $type];
        foreach ($this->headers as $own => $foreign) {
            $headers[$foreign] = $encoded->header($own);
        }

        return $encoded->with(headers: $headers);
    }

    public function open(Envelope $received): ?Envelope
    {
        $headers = [];
        foreach ($this->headers as $own => $foreign) {
            if (($value = $received->header($foreign)) !== null) {
                $headers[$own] = $value;
            }
        }
        $type = $this->type === null ? $received->type : $received->header($this->type);
        $mapped = $received->with(type: $type, headers: $headers);
        $opened = $this->serializer instanceof EnvelopeSerializer ? $this->serializer->open($mapped) : ($type === null ? null : $mapped);

        return $opened === null ? null : $opened->with(type: $this->types[$opened->type] ?? $opened->type);
    }

    public function decode(Envelope $envelope, string $class, Normalizer $normalizer): object
    {
        return $this->serializer->decode($envelope, $class, $normalizer);
    }
}
