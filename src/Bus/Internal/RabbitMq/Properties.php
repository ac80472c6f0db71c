<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\RabbitMq;

use Weft\Bus\Header;
use Weft\Bus\Transport\Delivery;
use Weft\Bus\Transport\Outgoing;

/**
 * Headers of the bus as AMQP properties, where AMQP has one of that meaning, and headers.
 *
 * @internal
 */
final class Properties
{
    private const NAMES = [
        Header::MESSAGE_ID => 'messageId',
        Header::CORRELATION_ID => 'correlationId',
        Header::CONTENT_TYPE => 'contentType',
    ];

    /** @return array{array<string, string>, array<string, string>} headers and properties */
    public static function of(Outgoing $message): array
    {
        $headers = $message->headers;
        $properties = ['type' => $message->type];
        foreach (self::NAMES as $header => $property) {
            if (isset($headers[$header])) {
                $properties[$property] = $headers[$header];
                unset($headers[$header]);
            }
        }

        return [$headers, $properties];
    }

    /**
     * @param array{int, bool, string, string, string, array<string, mixed>|string, array<string, mixed>} $fields as the
     *        extension delivers them
     */
    public static function delivery(array $fields): Delivery
    {
        [$tag, $redelivered, , $key, $body, $headers, $properties] = $fields;
        if (\is_string($headers)) {
            // What does not follow the protocol cannot be read; the body may still be.
            $headers = [];
        }
        foreach ($headers as $name => $value) {
            if (!\is_string($value)) {
                $headers[$name] = self::text($value);
            }
        }
        foreach (self::NAMES as $header => $property) {
            if (isset($properties[$property])) {
                $headers[$header] = $properties[$property];
            }
        }

        return new Delivery($tag, $properties['type'] ?? $key, $body, $headers, $redelivered);
    }

    /** Values that other programs may send. */
    private static function text(mixed $value): string
    {
        return \is_scalar($value) || $value === null
            ? (string) \json_encode($value, \JSON_PARTIAL_OUTPUT_ON_ERROR)
            : (string) \json_encode($value, \JSON_PARTIAL_OUTPUT_ON_ERROR | \JSON_UNESCAPED_SLASHES);
    }
}
