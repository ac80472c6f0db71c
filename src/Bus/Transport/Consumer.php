<?php

declare(strict_types=1);

namespace Weft\Bus\Transport;

use Weft\Bus\PublishFailed;

/** Takes deliveries from one queue. Each delivery ends with exactly one of ack, requeue and park. */
interface Consumer
{
    /**
     * The next deliveries, oldest first; waits until there is at least one.
     *
     * @param positive-int $max
     * @param float|null   $wait seconds after which to give up; null waits for ever, 0.0 does not wait
     *
     * @return list<Delivery> empty when the wait is over, or after stop() once nothing is left that was already fetched
     */
    public function next(int $max, ?float $wait = null): array;

    /**
     * Publishes what handling the message led to, then acknowledges it. A transport that can do both does them as one.
     * The acknowledgement may travel a little later together with others; close() waits for it.
     *
     * @param list<Outgoing> $publish published confirmed
     *
     * @throws PublishFailed the delivery is then still unacknowledged
     */
    public function ack(Delivery $delivery, array $publish = []): void;

    /** Gives the message back to the queue; it is delivered again, marked as redelivered. */
    public function requeue(Delivery $delivery): void;

    /**
     * Moves the message, its body untouched, to the queue's dead-letter queue, and returns when it is safe there.
     *
     * @param array<string, string> $headers replace those of the delivery
     *
     * @throws PublishFailed the delivery is then still unacknowledged
     */
    public function deadLetter(Delivery $delivery, array $headers): void;

    /** Takes no further deliveries; a waiting next() returns. Deliveries that were handed out can still be settled. */
    public function stop(): void;

    /** Stops, waits for acknowledgements on their way, and gives every unsettled delivery back to the queue. */
    public function close(): void;
}
