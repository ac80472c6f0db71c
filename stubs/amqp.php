<?php

declare(strict_types=1);

namespace Weft\Native;

/**
 * One AMQP 0-9-1 connection with automatic recovery, driven by a thread of its own. Calls that return an `int` start an
 * operation: its outcome is taken by id.
 */
final class AmqpConnection
{
    /**
     * Outcome: the AmqpConnection, once it is made.
     *
     * @throws \Weft\InvalidDsnError
     */
    public static function open(string $dsn): int
    {
    }

    /**
     * Outcome: null, once the broker has everything. Remembered and declared again after a reconnect.
     *
     * @param list<array{name: string, kind: string, durable?: bool, autoDelete?: bool, internal?: bool, passive?: bool, arguments?: array<string, mixed>}> $exchanges
     * @param list<array{name: string, durable?: bool, exclusive?: bool, autoDelete?: bool, passive?: bool, arguments?: array<string, mixed>}> $queues
     * @param list<array{exchange: string, queue?: string, toExchange?: string, routingKey?: string, arguments?: array<string, mixed>}> $bindings
     */
    public function declare(array $exchanges, array $queues, array $bindings): int
    {
    }

    /**
     * Outcome: an AmqpPublisher on a channel of its own.
     *
     * @param int $window most unconfirmed messages at once; unused without confirms
     */
    public function publisher(bool $confirm, int $window): int
    {
    }

    /**
     * Outcome: an AmqpConsumer on a channel of its own.
     *
     * @param int $prefetch most unsettled deliveries at once, 0…65535; 0 means no limit
     * @param array<string, mixed> $arguments of the consumer, such as `x-priority`
     */
    public function consume(string $queue, int $prefetch, bool $exclusive, array $arguments): int
    {
    }

    /** Outcome: `[int messages ready, int consumers]`. */
    public function queueState(string $queue): int
    {
    }

    /** Outcome: how many messages were removed. */
    public function purgeQueue(string $queue): int
    {
    }

    /** Outcome: how many messages were removed with it. */
    public function deleteQueue(string $queue): int
    {
    }

    /** Outcome: null. */
    public function deleteExchange(string $exchange): int
    {
    }

    /** @return array{string, string} `connected`, `connecting`, `blocked` or `closed`, and why */
    public function status(): array
    {
    }

    /** Outcome: `[string event, string message]`, or null once the connection is closed. */
    public function nextEvent(): int
    {
    }

    /** Outcome: null. Sends what is buffered, then closes; takes a few seconds at most. */
    public function close(): int
    {
    }
}

final class AmqpPublisher
{
    /**
     * Hands a message to the connection; never waits.
     *
     * @param array<string, mixed> $headers null, bool, int, float, string, lists and maps of them
     * @param array{contentType?: string, contentEncoding?: string, priority?: int, correlationId?: string, replyTo?: string, expiration?: string, messageId?: string, timestamp?: int, type?: string, appId?: string} $properties
     * @param bool $mandatory whether a message that reaches no queue is a failure
     * @param bool $watch false: a failure is told by the next {@see flush()} instead of an operation of its own
     *
     * @return int an operation that ends when the broker has confirmed; 0 without confirms or unwatched; -1 when there
     *             is no room: wait for {@see ready()} and try again
     */
    public function publish(string $exchange, string $routing_key, string $body, array $headers, array $properties, bool $persistent, bool $mandatory, bool $watch): int
    {
    }

    /** Outcome: null, once there is room in the window and the buffer. */
    public function ready(): int
    {
    }

    /** Outcome: null, once the broker has confirmed (without confirms: read) everything published so far. */
    public function flush(): int
    {
    }
}

final class AmqpConsumer
{
    /**
     * Up to `$max` deliveries that are here, or an operation whose outcome is such a list. An empty list means that the
     * consumer was cancelled and all its deliveries were taken.
     *
     * A delivery is `[int tag, bool redelivered, string exchange, string routingKey, string body, array headers,
     * array properties]`, or a string in place of the last two when they do not follow the protocol.
     *
     * @return int|list<array{int, bool, string, string, string, array<string, mixed>|string, array<string, mixed>}>
     */
    public function next(int $max): int|array
    {
    }

    /** False if the tag is from before a reconnect (the message comes again) or was settled before. */
    public function ack(int $tag): bool
    {
    }

    public function nack(int $tag, bool $requeue): bool
    {
    }

    /** Outcome: null. No new deliveries; those already here stay. */
    public function cancel(): int
    {
    }

    /** Outcome: null, once the broker has processed every settlement so far. */
    public function flush(): int
    {
    }

    /** Outcome: null. Sends settlements and closes the channel; unsettled deliveries return to the queue. */
    public function close(): int
    {
    }
}
