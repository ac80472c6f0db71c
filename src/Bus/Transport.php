<?php

declare(strict_types=1);

namespace Weft\Bus;

use Weft\Bus\Transport\Consumer;
use Weft\Bus\Transport\Outgoing;

/**
 * A message broker: queues, routing by message type, confirmed publishing, acknowledgement.
 *
 * A queue belongs to one service. A message is routed to every queue that is bound to its type. Deliveries are at least once: a
 * delivery that is not acknowledged is redelivered and marked as such.
 * `tests/Bus/Transport/TransportConformance.php` states the contract as tests; every transport passes it.
 */
interface Transport
{
    /**
     * Creates the queue, its dead-letter queue `<queue>.dead` and the bindings where they are missing. Existing bindings stay.
     *
     * @param list<string> $types names of message types, see {@see MessageType}
     */
    public function declare(string $queue, array $types): void;

    /**
     * Publishes messages in order to every queue bound to their types.
     *
     * @param iterable<Outgoing> $messages  a generator is read as fast as the broker accepts messages
     * @param bool               $confirmed whether to wait for the broker's confirmation of every message. Without it a lost connection
     *                                      may lose messages without an error
     *
     * @throws UnroutableMessageException when a message with `mustRoute` has no queue; the other messages are published
     * @throws PublishException     when the broker refuses a message or cannot be reached; some may have been published
     */
    public function publish(iterable $messages, bool $confirmed = true): void;

    /**
     * Sends messages to one queue, regardless of bindings; persistent and confirmed.
     *
     * @param list<Outgoing> $messages
     *
     * @throws UndefinedQueueException|PublishException
     */
    public function put(string $queue, array $messages): void;

    /**
     * @param positive-int $prefetch number of unacknowledged deliveries
     *
     * @throws UndefinedQueueException when the queue is not declared
     */
    public function consume(string $queue, int $prefetch): Consumer;

    /**
     * The number of messages that are ready for delivery. Unacknowledged messages do not count.
     *
     * @throws UndefinedQueueException
     */
    public function depth(string $queue): int;

    /**
     * Whether any process consumes the queue. A process that has died counts until its unacknowledged messages are requeued.
     *
     * @throws UndefinedQueueException
     */
    public function isConsumed(string $queue): bool;

    /**
     * Deletes a queue, its dead-letter queue and all messages in them; without the queue nothing happens.
     *
     * @throws TransportException
     */
    public function delete(string $queue): void;

    /** Closes the connections. Open consumers requeue their unacknowledged deliveries. */
    public function close(): void;
}
