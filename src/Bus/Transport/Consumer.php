<?php

declare(strict_types=1);

namespace Weft\Bus\Transport;

use Weft\Bus\PublishException;

/** Takes deliveries from one queue. Each delivery ends with exactly one of ack(), requeue() and deadLetter(). */
interface Consumer
{
    /**
     * Returns the next deliveries, oldest first; waits for at least one.
     *
     * @param positive-int $max
     * @param float|null   $wait seconds to wait; null waits without limit, 0.0 does not wait
     *
     * @return list<Delivery> empty when the wait is over, or after stop() when no fetched delivery is left
     */
    public function next(int $max, ?float $wait = null): array;

    /**
     * Publishes messages and then acknowledges the delivery, in one step where the transport can. The acknowledgement may be sent
     * later together with others; close() waits for it.
     *
     * @param list<Outgoing> $publish published and confirmed first
     *
     * @throws PublishException the delivery is still unacknowledged
     */
    public function ack(Delivery $delivery, array $publish = []): void;

    /** Returns the message to the queue. It is redelivered and marked as such. */
    public function requeue(Delivery $delivery): void;

    /**
     * Moves the message, its body unchanged, to the queue's dead-letter queue and returns when it is stored there.
     *
     * @param array<string, string> $headers replace those of the delivery
     *
     * @throws PublishException the delivery is still unacknowledged
     */
    public function deadLetter(Delivery $delivery, array $headers): void;

    /** Fetches no further deliveries and ends a waiting next(). Deliveries that were returned can still be acknowledged. */
    public function stop(): void;

    /** Stops, waits for pending acknowledgements, and requeues every unacknowledged delivery. */
    public function close(): void;
}
