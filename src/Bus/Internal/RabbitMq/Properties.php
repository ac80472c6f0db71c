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

    /** What a foreign sender may set and a dead letter keeps as it is. */
    private const KEPT = ['contentEncoding' => true, 'priority' => true, 'replyTo' => true, 'appId' => true, 'timestamp' => true];

    /** What must not be sent again as a property. */
    private const TOLD = ['expiration' => Header::EXPIRATION, 'userId' => Header::USER_ID];

    /**
     * @param array<string, mixed> $extra of the delivery that is parked
     * @return array{array<string, mixed>, array<string, string|int>} headers and properties
     */
    public static function of(Outgoing $message, array $extra = []): array
    {
        $headers = $message->headers;
        $properties = ['type' => $message->type] + ($extra['properties'] ?? []);
        foreach ($extra['headers'] ?? [] as $name => $value) {
            // Unless it was replaced, or left out.
            if (($headers[$name] ?? null) === self::text($value)) {
                $headers[$name] = $value;
            }
        }
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
        $extra = [];
        foreach ($headers as $name => $value) {
            if (!\is_string($value)) {
                $extra['headers'][$name] = $value;
                $headers[$name] = self::text($value);
            }
        }
        $kept = \array_intersect_key($properties, self::KEPT);
        if (($kept['timestamp'] ?? 0) < 0) {
            unset($kept['timestamp']);
        }
        if ($kept !== []) {
            $extra['properties'] = $kept;
        }
        foreach (self::TOLD as $property => $header) {
            if (isset($properties[$property])) {
                $headers[$header] = $properties[$property];
            }
        }
        foreach (self::NAMES as $header => $property) {
            if (isset($properties[$property])) {
                $headers[$header] = $properties[$property];
            }
        }

        return new Delivery($tag, $properties['type'] ?? $key, $body, $headers, $redelivered, $extra);
    }

    /** Values that other programs may send. */
    private static function text(mixed $value): string
    {
        return \is_scalar($value) || $value === null
            ? (string) \json_encode($value, \JSON_PARTIAL_OUTPUT_ON_ERROR)
            : (string) \json_encode($value, \JSON_PARTIAL_OUTPUT_ON_ERROR | \JSON_UNESCAPED_SLASHES);
    }
}
