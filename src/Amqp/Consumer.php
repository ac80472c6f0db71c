<?php

declare(strict_types=1);

namespace Weft\Amqp;

use Weft\Amqp\Internal\Fields;
use Weft\Native\AmqpConsumer;
use Weft\Runtime\Internal\Scheduler;
use Weft\Runtime\Internal\WaitsFor;
use Weft\UsageError;

/**
 * Receives the messages of one queue over a channel of its own. Made by {@see Connection::consume()}.
 *
 * It is started again after a reconnect. The broker then delivers unsettled messages again, and settling the old deliveries has no
 * effect. Iterate it, or take batches with {@see next()}; several tasks may do so concurrently. When the last reference is released,
 * unsettled deliveries return to the queue.
 *
 * @implements \IteratorAggregate<int, Delivery>
 */
final class Consumer implements \IteratorAggregate
{
    /** @internal */
    public function __construct(private readonly AmqpConsumer $native) {}

    /**
     * Returns one to `$max` deliveries in the order of the queue; waits for the first without limit. Returns an empty list once the
     * consumer was cancelled and all deliveries were taken. Cancelling the wait loses no delivery.
     *
     * @return list<Delivery>
     *
     * @throws ConsumerCancelledException the queue is gone
     * @throws ConnectionClosedException
     * @throws UsageError the consumer was closed before
     * @throws \ValueError `$max` is less than 1
     */
    #[WaitsFor('messages of RabbitMQ')]
    public function next(int $max = 100): array
    {
        if ($max < 1) {
            throw new \ValueError("The maximum of a batch must be at least 1, got {$max}");
        }
        $here = $this->native->next($max);
        /** @var list<array{int, bool, string, string, string, array<string, mixed>|string, array<string, mixed>}> $deliveries */
        $deliveries = \is_int($here) ? Scheduler::await($here) : $here;

        return \array_map(Fields::delivery(...), $deliveries);
    }

    /**
     * Yields deliveries until the consumer is cancelled. Leaving the loop loses no delivery; a new loop continues.
     *
     * @return \Generator<int, Delivery>
     *
     * @throws AmqpException|UsageError as {@see next()} does
     */
    public function getIterator(): \Generator
    {
        while (($here = $this->next(1)) !== []) {
            yield $here[0];
        }
    }

    /**
     * Marks a delivery as done. Never waits: the broker hears of it within a few milliseconds, together with others.
     *
     * It must be a delivery of this consumer: tags of two consumers may be the same.
     *
     * @return bool false if it is from before a reconnect, so that it comes again, or was settled before
     *
     * @throws UsageError the consumer was closed before
     */
    public function ack(Delivery $delivery): bool
    {
        return $this->native->ack($delivery->tag);
    }

    /**
     * Gives a delivery back, by default to the queue, where it is delivered again at once. Never waits.
     *
     * @return bool as for {@see ack()}
     *
     * @throws UsageError the consumer was closed before
     */
    public function nack(Delivery $delivery, bool $requeue = true): bool
    {
        return $this->native->nack($delivery->tag, $requeue);
    }

    /**
     * Refuses a delivery for good: it goes to the queue's dead-letter exchange, or is dropped if there is none.
     *
     * @return bool as for {@see ack()}
     *
     * @throws UsageError the consumer was closed before
     */
    public function reject(Delivery $delivery): bool
    {
        return $this->nack($delivery, requeue: false);
    }

    /**
     * Ends the flow of new deliveries. Those already here can still be taken and settled; then next() returns an empty
     * list and a loop ends.
     *
     * @throws AmqpException|UsageError
     */
    #[WaitsFor('RabbitMQ to cancel a consumer')]
    public function cancel(): void
    {
        Scheduler::await($this->native->cancel());
    }

    /**
     * Waits until the broker has processed everything settled so far.
     *
     * @throws ConnectionLostException it may not have: those deliveries come again
     * @throws ConnectionClosedException
     * @throws UsageError the consumer was closed before
     */
    #[WaitsFor('acknowledgements on their way to RabbitMQ')]
    public function flush(): void
    {
        Scheduler::await($this->native->flush());
    }

    /**
     * Sends what was settled and closes the channel; unsettled deliveries return to the queue. A second call does nothing.
     *
     * @throws ConnectionLostException the last settlements may not have arrived: those deliveries come again
     */
    #[WaitsFor('a channel of RabbitMQ to close')]
    public function close(): void
    {
        Scheduler::await($this->native->close());
    }
}
