<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\RabbitMq;

use Weft\Bus\Header;
use Weft\Bus\Internal\MessageKind;
use Weft\Bus\Internal\Sending\MessageHeaders;
use Weft\Bus\MessageDecodingException;
use Weft\Bus\Transport\Delivery;
use Weft\Bus\Transport\Outgoing;

use function Weft\Native\longId;
use function Weft\Native\shortId;

/**
 * Headers of the bus as AMQP properties, where AMQP has one of that meaning, and headers.
 *
 * RabbitMQ keeps up to 64 bytes of properties in the memory of the queue's process and more outside of it, where each message
 * costs a third more (`docs/reference/amqp.md`). So ids travel in their short form, and what exchange and routing key say is left out.
 *
 * @internal
 */
final class Properties
{
    /** Properties of foreign senders that a dead letter keeps. */
    private const DEAD_LETTER_PROPERTIES = ['contentEncoding' => true, 'replyTo' => true, 'appId' => true, 'timestamp' => true];

    /** Properties that must not be published again. */
    private const UNPUBLISHABLE = ['expiration' => Header::EXPIRATION, 'userId' => Header::USER_ID];

    /** Properties of the bus's own messages: others have none but these. */
    private const OWN = ['persistent' => true, 'messageId' => true, 'correlationId' => true, 'contentType' => true, 'priority' => true, 'type' => true];

    /**
     * The headers and properties of a message that is routed by its type, through the exchange of its kind or that of its {@see \Weft\Bus\Route}.
     *
     * @return array{array<string, mixed>, array<string, string|int>} headers and properties
     */
    public static function routed(Outgoing $message): array
    {
        $headers = $message->headers;
        if (!isset($headers[Header::EXCHANGE])) {
            // The exchange says it.
            unset($headers[Header::KIND]);

            return self::split($headers);
        }
        // Neither exchange nor routing key of others say what type and kind are.
        unset($headers[Header::EXCHANGE], $headers[Header::ROUTING_KEY]);
        [$headers, $properties] = self::split($headers);

        return [$headers, ['type' => $message->type] + $properties];
    }

    /**
     * The headers and properties of a message that is sent directly to a queue.
     *
     * @param array<string, mixed> $extra of the delivery that is dead-lettered
     * @return array{array<string, mixed>, array<string, string|int>} headers and properties
     */
    public static function direct(Outgoing $message, array $extra = []): array
    {
        $headers = $message->headers;
        /** @var array<string, mixed> $foreign */
        $foreign = $extra['headers'] ?? [];
        /** @var array<string, string|int> $kept */
        $kept = $extra['properties'] ?? [];
        foreach ($foreign as $name => $value) {
            // Unless it was replaced or removed.
            if (($headers[$name] ?? null) === self::text($value)) {
                $headers[$name] = $value;
            }
        }
        [$headers, $properties] = self::split($headers);

        return [$headers, ['type' => self::utf8($message->type)] + $properties + $kept];
    }

    /**
     * @param array{int, bool, string, string, string, array<string, mixed>|string, array<string, mixed>} $fields as the
     *        extension delivers them
     * @param array<string, mixed> $extra of the delivery
     * @return Delivery unreadable if the fields cannot be converted: one message must not stop the consumer
     */
    public static function delivery(array $fields, array $extra = []): Delivery
    {
        try {
            return self::converted($fields, $extra);
        } catch (\Throwable $thrown) {
            [$tag, $redelivered, , $key, $body] = $fields;

            return (new Delivery($tag, $key, $body, [], $redelivered, $extra))
                ->unreadable(MessageDecodingException::because("\"{$key}\"", "its headers or properties are invalid: {$thrown->getMessage()}", $thrown));
        }
    }

    /**
     * @param array{int, bool, string, string, string, array<string, mixed>|string, array<string, mixed>} $fields
     * @param array<string, mixed> $extra
     */
    private static function converted(array $fields, array $extra): Delivery
    {
        [$tag, $redelivered, $exchange, $key, $body, $headers, $properties] = $fields;
        if (\is_string($headers)) {
            // Properties that violate the protocol are skipped; the body may be readable.
            $headers = [];
        }
        // The broker has changed the exchange of a message that it dead-lettered.
        $isCommand = $exchange === Publisher::COMMANDS || ($headers['x-first-death-exchange'] ?? null) === Publisher::COMMANDS;
        if ($headers !== []) {
            $headers = \array_diff_key($headers, MessageHeaders::ADDED_BY_BROKER);
        }
        foreach ($headers as $name => $value) {
            if (!\is_string($value)) {
                $extra['headers'][$name] = $value;
                $headers[$name] = self::text($value);
            }
        }
        $foreign = \array_diff_key($properties, self::OWN);
        if ($foreign !== []) {
            $kept = \array_intersect_key($foreign, self::DEAD_LETTER_PROPERTIES);
            if (($kept['timestamp'] ?? 0) < 0) {
                unset($kept['timestamp']);
            }
            if ($kept !== []) {
                $extra['properties'] = $kept;
            }
            foreach (self::UNPUBLISHABLE as $property => $header) {
                if (isset($foreign[$property])) {
                    $headers[$header] = $foreign[$property];
                }
            }
        }
        // One after the other, because a loop over a list of names costs several times as much, for each message.
        if (isset($properties['messageId'])) {
            $headers[Header::MESSAGE_ID] = longId($properties['messageId']);
        } elseif (isset($headers[Header::MESSAGE_ID])) {
            $headers[Header::MESSAGE_ID] = longId(self::utf8($headers[Header::MESSAGE_ID]));
        }
        if (isset($properties['correlationId'])) {
            $headers[Header::CORRELATION_ID] = longId($properties['correlationId']);
        } elseif (isset($headers[Header::CORRELATION_ID])) {
            $headers[Header::CORRELATION_ID] = longId(self::utf8($headers[Header::CORRELATION_ID]));
        }
        if (isset($properties['contentType'])) {
            $headers[Header::CONTENT_TYPE] = $properties['contentType'];
        } elseif (isset($headers[Header::CONTENT_TYPE])) {
            $headers[Header::CONTENT_TYPE] = self::utf8($headers[Header::CONTENT_TYPE]);
        }
        if (isset($properties['priority'])) {
            $headers[Header::PRIORITY] = (string) $properties['priority'];
        }
        if ($isCommand) {
            $headers[Header::KIND] = MessageKind::Command->value;
        }

        /** @var array<string, string> $headers */
        return new Delivery($tag, $properties['type'] ?? $key, $body, $headers, $redelivered, $extra);
    }

    /**
     * @param array<string, mixed> $headers
     * @return array{array<string, mixed>, array<string, string|int>} headers and properties
     */
    private static function split(array $headers): array
    {
        $properties = [];
        // Foreign messages that are published again may have some, as may rows that an older version has stored.
        $headers = \array_diff_key($headers, MessageHeaders::BROKER_HEADERS);
        if (isset($headers[Header::MESSAGE_ID])) {
            $properties['messageId'] = self::id($headers[Header::MESSAGE_ID]);
            unset($headers[Header::MESSAGE_ID]);
        }
        if (isset($headers[Header::CORRELATION_ID])) {
            $properties['correlationId'] = self::id($headers[Header::CORRELATION_ID]);
            unset($headers[Header::CORRELATION_ID]);
        }
        if (isset($headers[Header::CONTENT_TYPE])) {
            $type = $headers[Header::CONTENT_TYPE];
            $properties['contentType'] = \is_string($type) ? self::utf8($type) : $type;
            unset($headers[Header::CONTENT_TYPE]);
        }
        if (isset($headers[Header::PRIORITY])) {
            $properties['priority'] = \max(0, \min(255, (int) $headers[Header::PRIORITY]));
            unset($headers[Header::PRIORITY]);
        }

        /** @var array<string, string|int> $properties */
        return [$headers, $properties];
    }

    /** @param mixed $id of a foreign message, where it is no string */
    private static function id(mixed $id): mixed
    {
        if (!\is_string($id)) {
            return $id;
        }
        $short = shortId($id);

        // Only an id of the bus's own has a short form.
        return $short !== $id ? $short : self::utf8($id);
    }

    /** A property is UTF-8, but a header of a foreign sender may have any bytes: those beyond ASCII become octal escapes then. */
    private static function utf8(string $bytes): string
    {
        return \mb_check_encoding($bytes, 'UTF-8') ? $bytes : \addcslashes($bytes, "\x80..\xff");
    }

    /** Values that other programs may send. */
    private static function text(mixed $value): string
    {
        return \is_scalar($value) || $value === null
            ? (string) \json_encode($value, \JSON_PARTIAL_OUTPUT_ON_ERROR)
            : (string) \json_encode($value, \JSON_PARTIAL_OUTPUT_ON_ERROR | \JSON_UNESCAPED_SLASHES);
    }
}
