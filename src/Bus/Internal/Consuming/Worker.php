<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Consuming;

use Psr\Log\LoggerInterface;
use Weft\Bus\Internal\Clock;
use Weft\Bus\Internal\Flow\BreakerState;
use Weft\Bus\Internal\Flow\ConcurrencyLimit;
use Weft\Bus\Internal\Handlers\Handler;
use Weft\Bus\Internal\Handlers\Handlers;
use Weft\Bus\Internal\Ordering\KeyQueues;
use Weft\Bus\Internal\Ordering\OrderedProcessor;
use Weft\Bus\Internal\Ordering\OrderUnknownException;
use Weft\Bus\Internal\Serializing\DeliveryOpener;
use Weft\Bus\Internal\Wakeup;
use Weft\Bus\Transport;
use Weft\Bus\Transport\Consumer;
use Weft\Bus\Transport\Delivery;
use Weft\Native;
use Weft\Runtime\Internal\Coroutine;
use Weft\Runtime\Internal\ExitHandler;
use Weft\Runtime\Scope;
use Weft\Runtime\Task;

use function Weft\async;
use function Weft\delay;
use function Weft\detach;
use function Weft\scope;
use function Weft\shield;
use function Weft\signal;

/**
 * Runs the handlers of one consumer, up to the concurrency limit: the next one starts when one has ended.
 *
 * @internal
 */
final class Worker
{
    private const SIGINT = 2;
    private const SIGTERM = 15;

    /** Seconds of a wait that a stop does not end, since it is over soon. */
    private const SHORT_WAIT = 0.02;

    /** @var array<int|string, Task> not settled yet, by delivery tag; those that replay a key by its name */
    private array $tasks = [];

    private int $started = 0;

    /** Keys whose messages are taken from the database, and how many of those messages wait for a place. */
    private int $replays = 0;
    private int $acquiring = 0;

    private bool $stopping = false;
    private bool $paused = false;
    private bool $isOver = false;
    private bool $forced = false;
    /** Limits running handlers; deliveries whose handlers have ended only await confirms and their acknowledgement. */
    public readonly ConcurrencyLimit $concurrency;

    private readonly DeliveryScheduler $intake;
    private readonly Wakeup $ended;

    /** Whether it is to end without the messages whose handler was not called, and what wakes those that wait for their call. */
    private bool $isLeaving = false;
    private readonly Wakeup $leaving;

    /** Owns the task of every delivery. A task owned by its predecessor's task would keep that one alive. */
    private ?Scope $scope = null;

    /** Cancels handlers in flight after the grace period, and its end by the monotonic clock. */
    private ?Task $limit = null;
    private float $until = \INF;

    /** @param OrderedProcessor|null $order null where no messages are in an order */
    public function __construct(
        private readonly Consumer $consumer,
        private readonly DeliveryProcessor $handling,
        Handlers $handlers,
        Transport $transport,
        private readonly string $queue,
        private readonly WorkerOptions $options,
        private readonly ?OrderedProcessor $order,
        ?BreakerState $breaker,
        private readonly LoggerInterface $logger,
        ?DeliveryOpener $opener = null,
    ) {
        $this->concurrency = new ConcurrencyLimit($options->concurrency, $breaker);
        $this->intake = new DeliveryScheduler($consumer, $transport, $queue, $options, $handlers, $order?->keyQueues, $this, $opener);
        $this->ended = new Wakeup("the end of a handler of queue \"{$queue}\"");
        $this->leaving = new Wakeup("the rate limit of a handler of queue \"{$queue}\"");
    }

    /** @return int how many messages were started, all of which have ended */
    public function run(): int
    {
        $watch = $this->options->signals ? detach($this->watchSignals(...)) : null;
        $lifetime = $this->options->stopAfter === null ? null : detach($this->stopAfter(...), $this->options->stopAfter);
        $messages = new MessagesInFlight($this->queue, $this->logger, fn(Coroutine $task, Delivery $delivery): bool => ($this->tasks[$delivery->tag] ?? null) === $task);
        ExitHandler::watch($messages);
        try {
            scope(function (Scope $scope): void {
                $this->scope = $scope;
                $attend = $this->order === null ? null : $scope->async($this->order->attend(...), $this);
                try {
                    $this->intake->feed();
                    $this->finish();
                } finally {
                    $attend?->cancel('the queue is no longer consumed');
                    $this->force();
                }
            });
        } finally {
            ExitHandler::unwatch($messages);
            $watch?->cancel();
            $lifetime?->cancel();
            $this->limit?->cancel();
            shield($this->consumer->close(...));
        }

        return $this->started;
    }

    /** Fetches no more messages; handlers in flight finish, and messages that wait for their call are requeued. */
    public function stop(): void
    {
        $this->isLeaving = true;
        $this->leaving->notify();
        $this->fetchNoMore();
    }

    /** All messages that it is to handle were started. */
    private function fetchNoMore(): void
    {
        $this->stopping = true;
        $this->consumer->stop();
        $this->ended->notify();
    }

    /**
     * Waits before a handler is called.
     *
     * @param float $until by the monotonic clock
     * @throws HandlingInterruptedException when the worker is to end before
     */
    public function waitUntil(float $until): void
    {
        while (($left = $until - Clock::monotonic()) > 0.0) {
            if ($this->isLeaving) {
                throw new HandlingInterruptedException('the worker was stopped before the handler was called');
            }
            $left > self::SHORT_WAIT ? $this->leaving->wait($until) : delay($left);
        }
    }

    /** As {@see stop()}, because the queue is paused. */
    public function pause(): void
    {
        $this->paused = true;
        $this->stop();
    }

    /** Whether it ended because the queue was paused, and for nothing else. */
    public function wasPaused(): bool
    {
        return $this->paused && !$this->isOver;
    }

    /**
     * Cancels handlers in flight after a time; their messages go back to the queue. The earliest deadline applies.
     *
     * @param float|null $grace seconds; null for as many as {@see WorkerOptions} says
     */
    public function finishWithin(?float $grace): void
    {
        $grace ??= $this->options->grace;
        $until = $grace === null ? \INF : Clock::monotonic() + $grace;
        if ($until >= $this->until) {
            return;
        }
        $this->until = $until;
        $this->limit?->cancel();
        $this->limit = detach(function () use ($grace): void {
            delay((float) $grace);
            $this->tasks === [] || $this->logger->warning('Messages of queue {queue} still in flight after the grace period of {seconds} seconds: {count}; they are cancelled and requeued', [
                'count' => \count($this->tasks),
                'queue' => $this->queue,
                'seconds' => $grace,
            ]);
            $this->force();
        });
    }

    /** Fetches no more messages and cancels handlers in flight; their messages are requeued. */
    public function abort(): void
    {
        $this->force();
        $this->stop();
    }

    /** Whether no more messages are fetched. */
    public function isStopping(): bool
    {
        return $this->stopping;
    }

    /** Whether handlers in flight are being cancelled. */
    public function isForced(): bool
    {
        return $this->forced;
    }

    /** The handlers of a delivery have ended: others may run while its messages are confirmed. */
    public function release(Delivery $delivery): void
    {
        if ($this->concurrency->release($delivery->tag)) {
            $this->ended->notify();
        }
    }

    /** Whether later messages wait until this one is settled, because they are in an order. */
    public function keepsOrder(Delivery $delivery): bool
    {
        return $this->order !== null && KeyQueues::key($delivery) !== null;
    }

    /** Whether no handler is in flight. */
    public function isIdle(): bool
    {
        return $this->tasks === [];
    }

    /** Whether the limit is reached with this many more messages. */
    public function isLast(int $more): bool
    {
        return $this->options->limit !== null && $this->started + $more >= $this->options->limit;
    }

    /**
     * Waits for a place and starts the handling of each, until the worker stops.
     *
     * @param list<Delivery> $deliveries
     */
    public function start(array $deliveries): void
    {
        foreach ($deliveries as $delivery) {
            if ($this->stopping || (!$this->concurrency->hasCapacity() && !$this->awaitCapacity())) {
                return;
            }
            $this->launch($delivery);
        }
    }

    /**
     * The same for many at a time.
     *
     * @param non-empty-list<Delivery> $deliveries
     */
    public function startBatch(Handler $handler, array $deliveries): void
    {
        if ($this->awaitCapacity()) {
            $tag = $deliveries[0]->tag;
            $this->concurrency->acquire($tag);
            $this->tasks[$tag] = $this->task($this->handleBatch(...), $handler, $deliveries);
            $this->started += \count($deliveries);
            $this->isLast(0) && $this->fetchNoMore();
        }
    }

    /** @return bool whether another handler may run; false when the worker stops */
    public function awaitCapacity(): bool
    {
        while (!$this->stopping && !$this->concurrency->hasCapacity()) {
            $left = $this->concurrency->retryAfter();
            $this->ended->wait($left === null ? null : Clock::monotonic() + $left);
        }

        return !$this->stopping;
    }

    /** Whether another handler may run, and none waits for it that was here before. */
    public function hasCapacityToSpare(): bool
    {
        return $this->acquiring === 0 && $this->concurrency->hasCapacity();
    }

    /**
     * Waits for a place for a delivery that has none; {@see leave()} frees it.
     *
     * @return bool false when the worker stops
     */
    public function acquire(Delivery $delivery): bool
    {
        if ($this->concurrency->holds($delivery->tag)) {
            return true;
        }
        $this->acquiring++;
        try {
            if (!$this->awaitCapacity()) {
                return false;
            }
        } finally {
            $this->acquiring--;
        }
        $this->concurrency->acquire($delivery->tag);

        return true;
    }

    /** Whether messages of a released key wait in the database. */
    public function hasReleasedKeys(): bool
    {
        return $this->order?->hasReleasedKeys() ?? false;
    }

    /** Handles what has waited for a released key, unless the key is busy. Waits while as many keys are handled so as handlers may run. */
    public function replay(string $key): void
    {
        while (!$this->stopping && $this->replays >= $this->concurrency->limit()) {
            $this->ended->wait();
        }
        if ($this->order === null || $this->stopping || !$this->order->keyQueues->reserve($key)) {
            return;
        }
        $this->replays++;
        $this->spawn("key {$key}", function () use ($key): void {
            try {
                $this->order?->resume($key, $this);
            } catch (OrderUnknownException) {
                // The next worker handles the rest.
            } finally {
                $this->replays--;
                $this->next($key);
            }
        });
    }

    /** Runs a task beside those of deliveries, unless one of this name is running. The worker ends when it has ended. */
    public function spawn(string $name, \Closure $main): void
    {
        $this->tasks[$name] ??= $this->task(function () use ($name, $main): void {
            try {
                $main();
            } finally {
                unset($this->tasks[$name]);
                $this->ended->notify();
            }
        });
    }

    private function launch(Delivery $delivery): void
    {
        $this->concurrency->acquire($delivery->tag);
        \assert($this->scope !== null);
        $this->tasks[$delivery->tag] = $this->scope->async($this->handle(...), $delivery);
        if (++$this->started === $this->options->limit) {
            $this->fetchNoMore();
        }
    }

    private function task(\Closure $main, mixed ...$args): Task
    {
        \assert($this->scope !== null);

        return $this->scope->async($main, ...$args);
    }

    private function handle(Delivery $delivery): void
    {
        $key = $this->order === null ? null : KeyQueues::key($delivery);
        try {
            $key === null ? $this->handling->run($delivery, $this) : $this->order?->run($delivery, $key, $this);
        } catch (OrderUnknownException) {
            // The message is requeued when the consumer closes.
        } finally {
            $this->leave($delivery);
            $key === null || $this->next($key);
        }
    }

    /** A message of the key has ended: the next one may start. */
    private function next(string $key): void
    {
        $next = $this->order?->keyQueues->leave($key);
        if ($next !== null && !$this->stopping) {
            $this->intake->resume($next);
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

    /** The delivery is settled, or stays unsettled because the worker stops. */
    public function leave(Delivery $delivery): void
    {
        $wasRunning = $this->concurrency->release($delivery->tag);
        $this->concurrency->breaker?->ended($delivery->tag);
        unset($this->tasks[$delivery->tag]);
        // Otherwise release() has woken who waits for a place, and what is left is the end of the last delivery.
        if ($wasRunning || $this->tasks === [] || $this->concurrency->breaker !== null) {
            $this->ended->notify();
        }
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
        $this->isOver = true;
        // In a task of its own: stopping contacts the broker and may block, and a signal without a listener ends the process. Where a control
        // group is stopped, a worker of a supervisor gets the same signal twice.
        if (!Native\supervised()) {
            async(function (): void {
                signal(self::SIGTERM, self::SIGINT);
                $this->force();
            });
        }
        $this->finishWithin(null);
        $this->stop();
    }

    private function stopAfter(float $seconds): void
    {
        delay($seconds);
        $this->isOver = true;
        $this->finishWithin(null);
        $this->stop();
    }

    private function force(): void
    {
        $this->forced = true;
        foreach ($this->tasks as $tag => $task) {
            $task->cancel('the bus was stopped immediately');
            if ($task->isDone()) {
                // It had not started and therefore does not remove itself.
                unset($this->tasks[$tag]);
            }
        }
    }
}
