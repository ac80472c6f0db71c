<?php

declare(strict_types=1);

namespace Weft\Bus\Serializer;

use Weft\Bus\MessageDecodingException;
use Weft\Bus\MessageEncodingException;
use Weft\Bus\Serializer;

/**
 * The body is the one property of the message class, a string of any bytes.
 *
 * ```php
 * #[SerializedBy(new RawBytes('image/png'))]
 * final class Thumbnail
 * {
 *     public function __construct(public readonly string $png) {}
 * }
 * ```
 */
final class RawBytes implements Serializer
{
    /** @param string $contentType the media type that messages are sent with */
    public function __construct(private readonly string $contentType = 'application/octet-stream') {}

    public function contentType(): string
    {
        return $this->contentType;
    }

    public function encode(object $message, Envelope $envelope, Normalizer $normalizer): Envelope
    {
        $values = \array_values($normalizer->normalize($message));
        if (\count($values) !== 1 || !\is_string($values[0])) {
            throw MessageEncodingException::because($message::class, 'raw bytes need a class with one property, a string');
        }

        return $envelope->with(body: $values[0]);
    }

    public function decode(Envelope $envelope, string $class, Normalizer $normalizer): object
    {
        $properties = (new \ReflectionClass($class))->getProperties();
        if (\count($properties) !== 1) {
            throw MessageDecodingException::because($class, 'raw bytes need a class with one property, a string');
        }

        return $normalizer->denormalize($class, [$properties[0]->name => $envelope->body]);
    }
}
