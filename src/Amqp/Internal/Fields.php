<?php

declare(strict_types=1);

namespace Weft\Amqp\Internal;

use Weft\Amqp\Binding;
use Weft\Amqp\Delivery;
use Weft\Amqp\Exchange;
use Weft\Amqp\Message;
use Weft\Amqp\Queue;

/**
 * Values of the client as the arrays that cross into the extension, and back.
 *
 * @internal
 */
final class Fields
{
    private const MILLISECONDS = 1_000;

    /** @return array{name: string, kind: string, durable: bool, autoDelete: bool, internal: bool, passive: bool, arguments: array<string, mixed>} */
    public static function exchange(Exchange $exchange): array
    {
        return [
            'name' => $exchange->name,
            'kind' => $exchange->kind,
            'durable' => $exchange->durable,
            'autoDelete' => $exchange->autoDelete,
            'internal' => $exchange->internal,
            'passive' => $exchange->passive,
            'arguments' => $exchange->arguments,
        ];
    }

    /** @return array{name: string, durable: bool, exclusive: bool, autoDelete: bool, passive: bool, arguments: array<string, mixed>} */
    public static function queue(Queue $queue): array
    {
        return [
            'name' => $queue->name,
            'durable' => $queue->durable,
            'exclusive' => $queue->exclusive,
            'autoDelete' => $queue->autoDelete,
            'passive' => $queue->passive,
            'arguments' => $queue->arguments,
        ];
    }

    /** @return array{exchange: string, queue?: string, toExchange?: string, routingKey: string, arguments: array<string, mixed>} */
    public static function binding(Binding $binding): array
    {
        $fields = ['exchange' => $binding->exchange, 'routingKey' => $binding->routingKey, 'arguments' => $binding->arguments];

        return $fields + ($binding->toExchange ? ['toExchange' => $binding->destination] : ['queue' => $binding->destination]);
    }

    /** @return array{contentType?: string, contentEncoding?: string, priority?: int, correlationId?: string, replyTo?: string, expiration?: string, messageId?: string, timestamp?: int, type?: string, appId?: string} */
    public static function properties(Message $message): array
    {
        $properties = \get_object_vars($message);
        unset($properties['body'], $properties['headers'], $properties['persistent']);
        if ($message->expiration !== null) {
            $properties['expiration'] = (string) (int) \round($message->expiration * self::MILLISECONDS);
        }

        /** @var array{contentType?: string, contentEncoding?: string, priority?: int, correlationId?: string, replyTo?: string, expiration?: string, messageId?: string, timestamp?: int, type?: string, appId?: string} */
        return \array_filter($properties, static fn(mixed $value): bool => $value !== null);
    }

    /** @param array{int, bool, string, string, string, array<string, mixed>|string, array<string, mixed>} $fields */
    public static function delivery(array $fields): Delivery
    {
        [$tag, $redelivered, $exchange, $routingKey, $body, $headers, $properties] = $fields;
        $malformed = \is_string($headers) ? $headers : null;
        $userId = $properties['userId'] ?? null;
        unset($properties['userId']);
        if (isset($properties['expiration'])) {
            $properties['expiration'] = self::seconds($properties['expiration']);
        }
        // Values that a foreign sender may write, but this client refuses to send, must not prevent the message from being received.
        if (($properties['timestamp'] ?? 0) < 0) {
            unset($properties['timestamp']);
        }
        $message = new Message($body, \is_string($headers) ? [] : $headers, ...$properties);

        return new Delivery($tag, $redelivered, $exchange, $routingKey, $message, $userId, $malformed);
    }

    /** RabbitMQ takes nothing but digits; another broker may. */
    private static function seconds(string $milliseconds): ?float
    {
        return \ctype_digit($milliseconds) && \strlen($milliseconds) <= 10
            ? \min((int) $milliseconds / self::MILLISECONDS, 4_294_967.0)
            : null;
    }
}
