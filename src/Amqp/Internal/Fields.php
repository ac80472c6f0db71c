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

    /** @return array<string, mixed> */
    public static function exchange(Exchange $exchange): array
    {
        return \get_object_vars($exchange);
    }

    /** @return array<string, mixed> */
    public static function queue(Queue $queue): array
    {
        return \get_object_vars($queue);
    }

    /** @return array<string, mixed> */
    public static function binding(Binding $binding): array
    {
        return [
            'exchange' => $binding->exchange,
            $binding->toExchange ? 'toExchange' : 'queue' => $binding->destination,
            'routingKey' => $binding->routingKey,
            'arguments' => $binding->arguments,
        ];
    }

    /** @return array<string, string|int> */
    public static function properties(Message $message): array
    {
        $properties = \get_object_vars($message);
        unset($properties['body'], $properties['headers'], $properties['persistent']);
        if ($message->expiration !== null) {
            $properties['expiration'] = (string) (int) \round($message->expiration * self::MILLISECONDS);
        }

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
        // What a foreign sender may write and this client would refuse must not keep the message from being received.
        if (($properties['timestamp'] ?? 0) < 0) {
            unset($properties['timestamp']);
        }
        $message = new Message($body, $malformed === null ? $headers : [], ...$properties);

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
