<?php

declare(strict_types=1);

namespace Weft\Bus\Internal;

use Weft\Bus\Internal\Batch\Collector;
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

    /** @var array<int, Task> not settled yet, by delivery tag */
    private array $tasks = [];

    /** @var array<int, true> whose handlers run; what is left for the others is to be confirmed and acknowledged */
    private array $running = [];

    private int $started = 0;
    private bool $stopping = false;
    private bool $forced = false;
    private readonly Collector $collector;
    private readonly Wakeup $ended;

    public function __construct(
        private readonly Consumer $consumer,
        private readonly Handling $handling,
        private readonly Handlers $handlers,
        private readonly Transport $transport,
        private readonly string $queue,
        private readonly Consumption $options,
    ) {
        $this->collector = new Collector($handlers);
        $this->ended = new Wakeup("the end of a handler of queue \"{$queue}\"");
    }

    /** @return int how many messages were started, all of which have ended */
    public function run(): int
    {
        $watch = $this->options->signals ? detach($this->watchSignals(...)) : null;
        try {
            scope(function (): void {
                try {
                    $this->feed();
                    $this->finish();
                } finally {
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
            unset($this->running[$delivery->tag]);
            $this->ended->notify();
        }
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
            $batching = $this->handlers->hasBatches ? $this->collector->handler($delivery) : null;
            if ($batching === null || $delivery->redelivered) {
                $this->begin([$delivery], $batching);
            } elseif (($full = $this->collector->add($batching, $delivery)) !== []) {
                $this->begin($full, $batching);
            } elseif ($this->options->limit !== null && $this->started + $this->collector->count() >= $this->options->limit) {
                $this->startRipe(true);
            }
            if ($this->stopping) {
                return;
            }
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
        while (\count($this->running) >= $this->options->concurrency && !$this->stopping) {
            $this->ended->wait();
        }
        if ($this->stopping) {
            return;
        }
        $tag = $deliveries[0]->tag;
        $this->running[$tag] = true;
        $this->tasks[$tag] = $batching === null ? async($this->handle(...), $deliveries[0]) : async($this->handleBatch(...), $batching, $deliveries);
        $this->started += \count($deliveries);
        if ($this->options->limit !== null && $this->started >= $this->options->limit) {
            $this->stop();
        }
    }

    private function handle(Delivery $delivery): void
    {
        try {
            $this->handling->run($delivery, $this);
        } finally {
            $this->leave($delivery);
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

    private function leave(Delivery $delivery): void
    {
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
