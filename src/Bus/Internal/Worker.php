<?php

declare(strict_types=1);

namespace Weft\Bus\Internal;

use Weft\Bus\Internal\Batch\Collector;
use Weft\Bus\Internal\Flow\Breaker;
use Weft\Bus\Internal\Flow\Gradient;
use Weft\Bus\Internal\Flow\Turns;
use Weft\Bus\Internal\Ordering\Lanes;
use Weft\Bus\Internal\Ordering\Order;
use Weft\Bus\Internal\Ordering\Unordered;
use Weft\Bus\Transport;
use Weft\Bus\Transport\Consumer;
use Weft\Bus\Transport\Delivery;
use Weft\Runtime\Task;

use function Weft\async;
use function Weft\detach;
use function Weft\scope;
use function Weft\shield;
use function Weft\signal;

/**
 * Runs the deliveries of one consumer, so many at once and never more: the next is started when one has ended.
 *
 * @internal
 */
final class Worker
{
    private const SIGINT = 2;
    private const SIGTERM = 15;

    /** Seconds an empty queue is watched, when asked to stop once it is empty. */
    private const LINGER = 0.1;

    /** @var array<int|string, Task> not settled yet, by delivery tag; those that replay a key by its name */
    private array $tasks = [];

    /** @var array<int, true> whose handlers run; what is left for the others is to be confirmed and acknowledged */
    private array $running = [];

    private int $started = 0;
    private bool $stopping = false;
    private bool $forced = false;
    /** Null where the number of handlers is given. */
    private readonly ?Gradient $gradient;

    /** Handlers that may run at once, where that is given. */
    private readonly int $most;

    /** @var array<int, int> when handlers were started, in nanoseconds, by delivery tag; only with a gradient */
    private array $startedAt = [];

    private readonly Turns $turns;
    private readonly Collector $collector;
    private readonly Wakeup $ended;

    /** @param Order|null $order null where no messages are in an order */
    public function __construct(
        private readonly Consumer $consumer,
        private readonly Handling $handling,
        private readonly Handlers $handlers,
        private readonly Transport $transport,
        private readonly string $queue,
        private readonly Consumption $options,
        private readonly ?Order $order,
        private readonly ?Breaker $breaker,
    ) {
        $this->gradient = $options->concurrency === null ? new Gradient(\hrtime(true) / 1e9) : null;
        $this->most = $options->concurrency ?? 0;
        $this->turns = new Turns();
        $this->collector = new Collector($handlers);
        $this->ended = new Wakeup("the end of a handler of queue \"{$queue}\"");
    }

    /** @return int how many messages were started, all of which have ended */
    public function run(): int
    {
        $watch = $this->options->signals ? detach($this->watchSignals(...)) : null;
        try {
            scope(function (): void {
                $attend = $this->order === null ? null : async($this->order->attend(...), $this);
                try {
                    $this->feed();
                    $this->finish();
                } finally {
                    $attend?->cancel('the queue is no longer consumed');
                    $this->force();
                }
            });
        } finally {
            $watch?->cancel();
            shield($this->consumer->close(...));
        }

        return $this->started;
    }

    /** Takes no more messages; what is in flight is finished. */
    public function stop(): void
    {
        $this->stopping = true;
        $this->consumer->stop();
        $this->ended->notify();
    }

    /** Takes no more messages and cancels what is in flight; its messages go back to the queue. */
    public function abort(): void
    {
        $this->force();
        $this->stop();
    }

    /** Whether no more messages are taken. */
    public function isStopping(): bool
    {
        return $this->stopping;
    }

    /** Whether what is in flight was told to stop at once. */
    public function isForced(): bool
    {
        return $this->forced;
    }

    /** The handlers of a delivery have ended: others may run while its messages are confirmed. */
    public function free(Delivery $delivery): void
    {
        if (isset($this->running[$delivery->tag])) {
            $this->gradient === null || $this->measure($delivery->tag, $this->gradient);
            unset($this->running[$delivery->tag]);
            $this->ended->notify();
        }
    }

    /** A message was handled. */
    public function succeeded(): void
    {
        $this->breaker?->succeeded();
    }

    /** A message was not handled and has gone its way. */
    public function failed(\Throwable $thrown): void
    {
        $this->breaker?->failed($thrown);
    }

    /** A message goes back to its queue, and not because of it. */
    public function undecided(): void
    {
        $this->breaker?->undecided();
    }

    /** Handlers that may run at once now. */
    public function limit(): int
    {
        return $this->gradient->limit ?? $this->most;
    }

    /** Handles what has waited for a key that was released, unless the key is busy: then it is looked for again. */
    public function replay(string $key): void
    {
        if ($this->order === null || $this->stopping || !$this->order->lanes->reserve($key)) {
            return;
        }
        $this->tasks["key {$key}"] = async(function () use ($key): void {
            try {
                $this->order->replay($key, $this);
            } catch (Unordered) {
                // The next worker does.
            } finally {
                unset($this->tasks["key {$key}"]);
                $this->next($key);
                $this->ended->notify();
            }
        });
    }

    private function feed(): void
    {
        while (!$this->stopping) {
            $deliveries = $this->consumer->next($this->options->prefetch, $this->patience());
            if ($deliveries === [] && $this->options->stopWhenEmpty && !$this->startRipe(true) && $this->tasks === [] && $this->transport->depth($this->queue) === 0) {
                // Messages on their way to this consumer are neither ready in the queue nor here yet.
                $deliveries = $this->consumer->next($this->options->prefetch, self::LINGER);
                if ($deliveries === []) {
                    return;
                }
            }
            $this->start($deliveries);
            $this->startRipe(false);
        }
    }

    /** Seconds to wait for messages; null for ever. */
    private function patience(): ?float
    {
        $linger = $this->options->stopWhenEmpty ? self::LINGER : null;
        $due = $this->collector->due();

        return $due === null ? $linger : \max(0.0, \min($linger ?? \INF, $due - \microtime(true)));
    }

    /** @param list<Delivery> $deliveries those not started when it is time to stop go back with the consumer's close */
    private function start(array $deliveries): void
    {
        foreach ($deliveries as $delivery) {
            if (Turns::concern($delivery)) {
                $this->startInTurns($deliveries);

                return;
            }
        }
        foreach ($deliveries as $delivery) {
            $this->startOne($delivery);
            if ($this->stopping) {
                return;
            }
        }
    }

    /**
     * What arrives meanwhile may come first.
     *
     * @param list<Delivery> $deliveries
     */
    private function startInTurns(array $deliveries): void
    {
        \array_walk($deliveries, $this->turns->add(...));
        while (!$this->stopping && !$this->turns->isEmpty()) {
            $this->awaitPlace();
            $arrived = $this->stopping ? [] : $this->consumer->next($this->options->prefetch, 0.0);
            \array_walk($arrived, $this->turns->add(...));
            $next = $this->stopping ? null : $this->turns->take();
            $next === null || $this->startOne($next);
            $this->startRipe(false);
        }
    }

    private function startOne(Delivery $delivery): void
    {
        $batching = $this->handlers->hasBatches ? $this->collector->handler($delivery) : null;
        if ($batching === null || $delivery->redelivered) {
            $this->order !== null && !$this->order->lanes->enter($delivery) || $this->begin([$delivery], $batching);
        } elseif (($full = $this->collector->add($batching, $delivery)) !== []) {
            $this->begin($full, $batching);
        } elseif ($this->options->limit !== null && $this->started + $this->collector->count() >= $this->options->limit) {
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
            $this->begin($batch, $this->collector->handler($batch[0]));
        }

        return $ripe !== [];
    }

    /**
     * @param non-empty-list<Delivery> $deliveries
     * @param Handler|null             $batching   null for one delivery by itself
     */
    private function begin(array $deliveries, ?Handler $batching): void
    {
        $this->awaitPlace();
        if (!$this->stopping) {
            $this->launch($deliveries, $batching);
        }
    }

    /** Waits until another handler may run, or the worker stops. */
    private function awaitPlace(): void
    {
        while (!$this->stopping && (\count($this->running) >= ($this->gradient->limit ?? $this->most) || $this->breaker?->holds())) {
            $left = $this->breaker?->left();
            $this->ended->wait($left === null ? null : \microtime(true) + $left);
        }
    }

    /** @param non-empty-list<Delivery> $deliveries */
    private function launch(array $deliveries, ?Handler $batching): void
    {
        $tag = $deliveries[0]->tag;
        $this->running[$tag] = true;
        $this->gradient === null || $this->startedAt[$tag] = \hrtime(true);
        $this->breaker?->started();
        $this->tasks[$tag] = $batching === null ? async($this->handle(...), $deliveries[0]) : async($this->handleBatch(...), $batching, $deliveries);
        $this->started += \count($deliveries);
        if ($this->options->limit !== null && $this->started >= $this->options->limit) {
            $this->stop();
        }
    }

    private function handle(Delivery $delivery): void
    {
        try {
            $key = $this->order === null ? null : Lanes::key($delivery);
            $key === null ? $this->handling->run($delivery, $this) : $this->inOrder($delivery, $key);
        } finally {
            $this->leave($delivery);
        }
    }

    private function inOrder(Delivery $delivery, string $key): void
    {
        try {
            $this->order?->run($delivery, $key, $this);
        } catch (Unordered) {
            // It goes back when the consumer closes.
        } finally {
            $this->next($key);
        }
    }

    /** Starts the next of a key; it takes the place of the one that has just ended. */
    private function next(string $key): void
    {
        $next = $this->order?->lanes->leave($key);
        if ($next !== null && !$this->stopping) {
            $this->launch([$next], null);
        }
    }

    /** @param non-empty-list<Delivery> $deliveries */
    private function handleBatch(Handler $handler, array $deliveries): void
    {
        try {
            $this->handling->runBatch($handler, $deliveries, $this);
        } finally {
            $this->leave($deliveries[0]);
        }
    }

    private function measure(int $tag, Gradient $gradient): void
    {
        $now = \hrtime(true);
        $gradient->ended(($now - $this->startedAt[$tag]) / 1e9, \count($this->running), $now / 1e9);
        unset($this->startedAt[$tag]);
    }

    private function leave(Delivery $delivery): void
    {
        $this->gradient === null || !isset($this->startedAt[$delivery->tag]) || $this->measure($delivery->tag, $this->gradient);
        unset($this->tasks[$delivery->tag], $this->running[$delivery->tag]);
        $this->ended->notify();
    }

    private function finish(): void
    {
        while ($this->tasks !== []) {
            $this->ended->wait();
        }
    }

    private function watchSignals(): void
    {
        signal(self::SIGTERM, self::SIGINT);
        $this->stop();
        signal(self::SIGTERM, self::SIGINT);
        $this->force();
    }

    private function force(): void
    {
        $this->forced = true;
        foreach ($this->tasks as $task) {
            $task->cancel('the bus was told to stop at once');
        }
    }
}
