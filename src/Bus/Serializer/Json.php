<?php

declare(strict_types=1);

namespace Weft\Bus\Serializer;

use Weft\Bus\Internal\Serializing\JsonObject;
use Weft\Bus\Serializer;

/** The bus's own JSON, with a content type: for receivers that want one, and inside other formats. */
final class Json implements Serializer
{
    /** @param string $contentType of the messages, such as `application/vnd.shop+json` */
    public function __construct(private readonly string $contentType = 'application/json') {}

    public function contentType(): string
    {
        return $this->contentType;
    }

    public function encode(object $message, Envelope $envelope, Normalizer $normalizer): Envelope
    {
        return $envelope->with(body: JsonObject::encode($message::class, $normalizer->normalize($message)));
    }

    public function decode(Envelope $envelope, string $class, Normalizer $normalizer): object
    {
        return $normalizer->denormalize($class, JsonObject::decode($class, $envelope->body));
    }
}
