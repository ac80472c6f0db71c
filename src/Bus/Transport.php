<?php

declare(strict_types=1);

namespace Weft\Bus;

use Weft\Bus\Transport\Consumer;
use Weft\Bus\Transport\Outgoing;

/**
 * A broker, as much of it as the bus needs: queues, routing by message type, confirmed publishing, acknowledgement.
 *
 * One queue belongs to one service. A message reaches every queue that is bound to its type. Deliveries are at least
 * once: what is delivered and not acknowledged is delivered again, marked as redelivered.
 * `tests/Bus/Transport/TransportConformance.php` states the contract as tests; every transport passes it.
 */
interface Transport
{
    /**
     * Makes the queue, its dead-letter queue `<queue>.dead`, and the bindings, where they do not exist yet.
     * Bindings made earlier stay.
     *
     * @param list<string> $types names of message types, see {@see MessageType}
     */
    public function declare(string $queue, array $types): void;

    /**
     * Publishes to every queue bound to the type of each message, in order.
     *
     * @param iterable<Outgoing> $messages  a generator is read as fast as the broker takes
     * @param bool               $confirmed whether to return only when the broker has taken responsibility for all of
     *                                      them; without, they may be lost with the connection, and that is not reported
     *
     * @throws UnroutableMessage when a message that must be routed has no queue; the others are published
     * @throws PublishFailed     when the broker refused or cannot be reached; some may have been published
     */
    public function publish(iterable $messages, bool $confirmed = true): void;

    /**
     * Puts messages into one queue and no other, whatever is bound to their types, durable and confirmed.
     *
     * @param list<Outgoing> $messages
     *
     * @throws UndefinedQueue|PublishFailed
     */
    public function put(string $queue, array $messages): void;

    /**
     * @param positive-int $prefetch how many deliveries may be waiting for their acknowledgement at once
     *
     * @throws UndefinedQueue when the queue was never declared
     */
    public function consume(string $queue, int $prefetch): Consumer;

    /** How many messages are ready for delivery; those delivered and not acknowledged are not counted.
     *
     * @throws UndefinedQueue
     */
    public function depth(string $queue): int;

    /**
     * Whether any process consumes the queue. A process that has died counts until its unacknowledged messages are back in the queue.
     *
     * @throws UndefinedQueue
     */
    public function isConsumed(string $queue): bool;

    /** Closes the connections; consumers that are still open give their deliveries back. */
    public function close(): void;
}
