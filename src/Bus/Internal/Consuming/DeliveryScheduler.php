<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Consuming;

use Weft\Bus\Header;
use Weft\Bus\Internal\Batch\BatchCollector;
use Weft\Bus\Internal\Clock;
use Weft\Bus\Internal\Flow\FairQueue;
use Weft\Bus\Internal\Handlers\Handler;
use Weft\Bus\Internal\Handlers\Handlers;
use Weft\Bus\Internal\Ordering\KeyQueues;
use Weft\Bus\Internal\Serializing\DeliveryOpener;
use Weft\Bus\Transport;
use Weft\Bus\Transport\Consumer;
use Weft\Bus\Transport\Delivery;
use Weft\Bus\Transport\TransactionalConsumer;

use function Weft\delay;

/**
 * Fetches deliveries and decides which one starts next: by priority and fairness, in batches, or in order of arrival.
 *
 * @internal
 */
final class DeliveryScheduler
{
    /** Seconds that an empty queue is watched with stopWhenEmpty. */
    private const EMPTY_AFTER = 0.1;

    /** Seconds between two queries of a database without new messages, while other messages can be started. */
    private const POLL_INTERVAL = 0.005;

    private float $again = 0.0;

    /** Deliveries that may start when a handler may: of the messages of a key only the first, so that none of them overtakes another. */
    private readonly FairQueue $turns;

    /** Whether {@see feed()} starts the deliveries in {@see $turns}. */
    private bool $isDraining = false;

    private readonly BatchCollector $collector;

    /**
     * @param KeyQueues|null      $keyQueues null where no messages are in an order
     * @param DeliveryOpener|null $opener    null where the queue has no formats of its own
     */
    public function __construct(
        private readonly Consumer $consumer,
        private readonly Transport $transport,
        private readonly string $queue,
        private readonly WorkerOptions $options,
        private readonly Handlers $handlers,
        private readonly ?KeyQueues $keyQueues,
        private readonly Worker $worker,
        private readonly ?DeliveryOpener $opener = null,
    ) {
        $this->turns = new FairQueue();
        $this->collector = new BatchCollector($handlers);
    }

    /** Runs until the worker stops, or the queue is empty with stopWhenEmpty. Deliveries that were not started are requeued when the consumer closes. */
    public function feed(): void
    {
        while (!$this->worker->isStopping()) {
            $deliveries = $this->consumer->next($this->options->prefetch, $this->waitTimeout());
            if ($deliveries === [] && $this->options->stopWhenEmpty && !$this->startRipe(true) && $this->worker->isIdle() && !$this->worker->hasReleasedKeys() && $this->transport->depth($this->queue) === 0) {
                // Messages in transit to this consumer are neither ready in the queue nor fetched.
                $deliveries = RemainingDeliveries::next($this->consumer, $this->options->prefetch, self::EMPTY_AFTER);
                if ($deliveries === []) {
                    return;
                }
            }
            $this->start($this->opened($deliveries));
            $this->startRipe(false);
        }
    }

    /**
     * @param list<Delivery> $deliveries
     * @return list<Delivery>
     */
    private function opened(array $deliveries): array
    {
        return $this->opener === null ? $deliveries : \array_map($this->opener->open(...), $deliveries);
    }

    /** Seconds to wait for messages; null for no limit. */
    private function waitTimeout(): ?float
    {
        $linger = $this->options->stopWhenEmpty ? self::EMPTY_AFTER : null;
        $due = $this->collector->due();

        return $due === null ? $linger : \max(0.0, \min($linger ?? \INF, $due - Clock::monotonic()));
    }

    /** @param list<Delivery> $deliveries */
    private function start(array $deliveries): void
    {
        foreach ($deliveries as $delivery) {
            if (isset($delivery->headers[Header::PRIORITY]) || isset($delivery->headers[Header::FAIR_KEY])) {
                $this->startInTurns($deliveries);

                return;
            }
        }
        if ($this->keyQueues === null && !$this->handlers->hasBatches) {
            $this->worker->start($deliveries);

            return;
        }
        foreach ($deliveries as $delivery) {
            $this->enter($delivery) && $this->startOne($delivery);
            if ($this->worker->isStopping()) {
                return;
            }
        }
    }

    /**
     * Starts deliveries so that tenants take turns. A delivery that arrives meanwhile may start first.
     *
     * @param list<Delivery> $deliveries
     */
    private function startInTurns(array $deliveries): void
    {
        $this->line($deliveries);
        $this->isDraining = true;
        while (!$this->turns->isEmpty() && $this->worker->awaitCapacity()) {
            $this->look();
            $this->startNext();
            $this->startRipe(false);
        }
        $this->isDraining = false;
    }

    /** Starts the next delivery of a key that is free again: at once, or in its turn where others wait. */
    public function resume(Delivery $delivery): void
    {
        if ($this->turns->isEmpty() && $this->worker->hasCapacityToSpare()) {
            $this->worker->start([$delivery]);

            return;
        }
        $this->turns->add($delivery);
        $this->isDraining || $this->worker->spawn('turns', function (): void {
            // New tasks run before those that were woken: it lets them take the place they have waited for.
            delay(0.0);
            while (!$this->turns->isEmpty() && $this->worker->awaitCapacity()) {
                $this->startNext();
            }
        });
    }

    private function startNext(): void
    {
        $next = $this->worker->isStopping() ? null : $this->turns->take();
        $next === null || $this->startOne($next);
    }

    /** @param list<Delivery> $deliveries */
    private function line(array $deliveries): void
    {
        foreach ($deliveries as $delivery) {
            $this->enter($delivery) && $this->turns->add($delivery);
        }
    }

    /** @return bool whether no message of the same key is before it; otherwise {@see resume()} gets it when it is its turn */
    private function enter(Delivery $delivery): bool
    {
        return $this->keyQueues === null || $this->batchHandler($delivery) !== null || $this->keyQueues->enter($delivery);
    }

    /** Fetches new messages. A database is not queried for each message that is started. */
    private function look(): void
    {
        $now = Clock::monotonic();
        if ($now < $this->again) {
            return;
        }
        $arrived = $this->opened($this->consumer->next($this->options->prefetch, 0.0));
        $this->line($arrived);
        $this->again = $arrived === [] && $this->consumer instanceof TransactionalConsumer ? $now + self::POLL_INTERVAL : 0.0;
    }

    private function batchHandler(Delivery $delivery): ?Handler
    {
        return $this->handlers->hasBatches ? $this->collector->handler($delivery) : null;
    }

    private function startOne(Delivery $delivery): void
    {
        $handler = $this->batchHandler($delivery);
        if ($handler === null) {
            $this->worker->start([$delivery]);
        } elseif ($delivery->redelivered) {
            // Alone, because it may be a message that crashes workers.
            $this->worker->startBatch($handler, [$delivery]);
        } elseif (($full = $this->collector->add($handler, $delivery)) !== []) {
            $this->worker->startBatch($handler, $full);
        } elseif ($this->worker->isLast($this->collector->count())) {
            $this->startRipe(true);
        }
    }

    /** @return bool whether batches were started */
    private function startRipe(bool $all): bool
    {
        if ($this->collector->due() === null) {
            return false;
        }
        $ripe = $this->collector->ripe($all);
        foreach ($ripe as $batch) {
            $handler = $this->collector->handler($batch[0]);
            \assert($handler !== null);
            $this->worker->startBatch($handler, $batch);
        }

        return $ripe !== [];
    }
}
