<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Consuming;

use Weft\Bus\DeadLetters;
use Weft\Bus\Internal\Batch\BatchDispatcher;
use Weft\Bus\Internal\Batch\BatchInvoker;
use Weft\Bus\Internal\Clock;
use Weft\Bus\Internal\Flow\BreakerState;
use Weft\Bus\Internal\Identifier;
use Weft\Bus\Internal\MetricsPoller;
use Weft\Bus\Internal\Ordering\OrderedProcessor;
use Weft\Bus\Internal\Ordering\ActiveConsumerLock;
use Weft\Bus\Internal\Ordering\BlockedMessageConsumer;
use Weft\Bus\Internal\Persistence\Persistence;
use Weft\Bus\Internal\Setup;
use Weft\Bus\Internal\Wakeup;
use Weft\Bus\DeliveryGuarantee;
use Weft\Bus\Transport\Consumer;
use Weft\Bus\Transport\RabbitMq;
use Weft\Bus\Transport\ReportingTransport;
use Weft\Bus\Transport\TransactionalConsumer;
use Weft\Internal\ErrorLog;
use Weft\Native;
use Weft\Runtime\CancelledException;
use Weft\Runtime\Task;

use function Weft\current;
use function Weft\detach;
use function Weft\run;
use function Weft\shield;
use function Weft\signal;

/**
 * Declares queues and runs a worker for each consumed queue.
 *
 * @internal
 */
final class Receiver
{
    private const SIGINT = 2;
    private const SIGTERM = 15;

    /** Seconds without a message after which a queue counts as empty. */
    private const EMPTY_AFTER = 0.2;
    private const BATCH_SIZE = 1000;

    /** The prefetch limit of one RabbitMQ consumer; several consumers would not preserve the order of the queue. */
    private const MAX_ORDERED_PREFETCH = 65_535;

    /** @var array<int, Worker> */
    private array $workers = [];

    /** @var array<int, ActiveConsumerLock> */
    private array $standbys = [];

    /** @var array<string, bool> whether the last worker of a queue ended because of its pause */
    private array $paused = [];

    /** Number of running consume() calls. */
    private int $consumed = 0;

    /** Counts stop() calls, so that a consume() call that is still starting notices one. */
    private int $stops = 0;

    private readonly Wakeup $ended;

    /** Logs connection events of the transport while a queue is consumed. */
    private ?Task $report = null;

    public function __construct(private readonly Setup $setup)
    {
        $this->ended = new Wakeup('the end of what the bus consumes');
    }

    public function declare(string $queue): void
    {
        Identifier::check('A queue name', $queue, 250);
        $this->setup->transport->declare($queue, $this->setup->handlers->types());
        $this->setup->persistence?->prepare();
        $this->setup->sagas->prepare();
        $this->setup->claims->prepare();
    }

    /** @return list<string> what {@see declare()} would make, a line each */
    public function plan(string $queue): array
    {
        if ($this->setup->transport instanceof RabbitMq && !$this->setup->transport->declares($queue)) {
            return $this->setup->transport->plan($queue);
        }
        $steps = ["queue {$queue}", 'queue ' . DeadLetters::queueOf($queue)];
        foreach ($this->setup->handlers->types() as $type) {
            $steps[] = "binding of {$type} to {$queue}";
        }

        return $steps;
    }

    /** @return int how many messages were handled or dead-lettered */
    public function consume(string $queue, WorkerOptions $options): int
    {
        $run = fn(): int => $this->work($queue, $options);
        if ($this->setup->handlers->types() === []) {
            $this->setup->logger->warning('Queue {queue} is consumed without handlers, every message is dead-lettered: register handlers with Bus::handlers()', ['queue' => $queue]);
        }
        foreach ($this->setup->handlers->unmatched() as $listener) {
            $this->setup->logger->warning('Listener {listener}() listens to {target}, and no known message class fits: name the classes in MessageOptions', ['listener' => $listener->name, 'target' => $listener->target()]);
        }

        return current() === null ? run($run) : $run();
    }

    /** @param float|null $grace seconds after which what is in flight is cancelled; null for as many as each was told */
    public function stop(?float $grace = null): void
    {
        $this->stops++;
        $this->setup->paused->notify();
        foreach ($this->standbys as $standby) {
            $standby->stop();
        }
        // Before the broker is contacted, which may not respond.
        foreach ($this->workers as $worker) {
            $worker->finishWithin($grace);
        }
        foreach ($this->workers as $worker) {
            $worker->stop();
        }
    }

    /** Returns when everything has stopped; handlers in flight are cancelled. */
    public function abort(): void
    {
        $this->stops++;
        $this->setup->paused->notify();
        foreach ($this->standbys as $standby) {
            $standby->stop();
        }
        foreach ($this->workers as $worker) {
            $worker->abort();
        }
        while ($this->consumed > 0) {
            $this->ended->wait();
        }
    }

    /** @return int how many messages were removed */
    public function purge(string $queue): int
    {
        if (current() === null) {
            return run(fn(): int => $this->purge($queue));
        }
        $origin = DeadLetters::origin($queue);
        $origin === null || $this->setup->persistence?->prepare();
        $consumer = $this->setup->transport->consume($queue, self::BATCH_SIZE);
        $removed = 0;
        try {
            while (($deliveries = RemainingDeliveries::next($consumer, self::BATCH_SIZE, self::EMPTY_AFTER)) !== []) {
                foreach ($deliveries as $delivery) {
                    $origin === null || $this->setup->persistence?->releaseKeyOf($delivery, $origin);
                    $consumer->ack($delivery);
                    ++$removed;
                }
            }
        } finally {
            $consumer->close();
        }

        return $removed;
    }

    private function work(string $queue, WorkerOptions $options): int
    {
        $stops = $this->stops;
        $this->consumed++;
        try {
            $this->declare($queue);
            $this->setup->persistence?->broker->hold();

            $handled = 0;
            $started = Clock::monotonic();
            while ($this->awaitResumption($queue, $options, $stops, $started)) {
                $left = $options->after($handled, Clock::monotonic() - $started);
                if ($left === null) {
                    break;
                }
                $this->paused[$queue] = false;
                $handled += !$this->setup->handlers->hasOrdered && !$this->setup->persistence?->keys->anyOf($queue)
                    ? $this->receive($queue, $left, $stops)
                    : $this->inTurn($queue, $left, $stops);
                if (!$this->paused[$queue]) {
                    break;
                }
            }

            return $handled;
        } finally {
            if ($this->consumed === 1) {
                shield(fn() => $this->setup->persistence?->broker->release());
            }
            $this->consumed--;
            $this->ended->notify();
        }
    }

    /**
     * Waits while the queue is paused.
     *
     * @param int $stops as many as there were when this was asked for
     * @return bool false when it was told to stop meanwhile
     */
    private function awaitResumption(string $queue, WorkerOptions $options, int $stops, float $started): bool
    {
        if (!$this->setup->paused->has($queue)) {
            return true;
        }
        $this->setup->logger->notice('Queue {queue} is paused', ['queue' => $queue]);
        if ($options->stopWhenEmpty) {
            return false;
        }
        $isSignalled = false;
        $signal = $options->signals ? detach(function () use (&$isSignalled): void {
            signal(self::SIGTERM, self::SIGINT);
            $isSignalled = true;
            $this->setup->paused->notify();
        }) : null;
        try {
            do {
                if ($this->stops !== $stops || $isSignalled || $options->after(0, Clock::monotonic() - $started) === null) {
                    return false;
                }
            } while (!$this->setup->paused->await($queue, paused: false));
        } finally {
            $signal?->cancel('the queue is resumed');
        }
        $this->setup->logger->notice('Queue {queue} is resumed', ['queue' => $queue]);

        return true;
    }

    /** Ends a worker when its queue is paused. */
    private function watchPause(string $queue, Worker $worker): void
    {
        while (!$this->setup->paused->await($queue, paused: true)) {
            // Again after a second or a change.
        }
        $worker->pause();
    }

    /** Consumes a queue of ordered messages while this process holds its lock. */
    private function inTurn(string $queue, WorkerOptions $options, int $stops): int
    {
        $persistence = $this->setup->persistence ?? throw new \Error("Queue \"{$queue}\" has messages marked #[OrderedBy], which need a database: pass one to Bus::connect()");
        if ($options->prefetch > self::MAX_ORDERED_PREFETCH) {
            throw new \ValueError("Queue \"{$queue}\" has messages marked #[OrderedBy], for which the prefetch is at most " . self::MAX_ORDERED_PREFETCH . ", got {$options->prefetch}");
        }
        $handled = 0;
        $started = Clock::monotonic();
        $left = $options;
        while ($left !== null) {
            $standby = $this->standBy($persistence, $queue, $left, $stops);
            try {
                // Waiting for its turn counts.
                $left = $standby === null ? null : $options->after($handled, Clock::monotonic() - $started);
                $handled += $left === null ? 0 : $this->receive($queue, $left, $stops, $standby);
            } finally {
                $standby?->release();
            }
            $left = $standby?->wasLost() ? $options->after($handled, Clock::monotonic() - $started) : null;
        }

        return $handled;
    }

    /** @return ActiveConsumerLock|null null when it was told to stop, or its time was over, before it was its turn */
    private function standBy(Persistence $persistence, string $queue, WorkerOptions $options, int $stops): ?ActiveConsumerLock
    {
        $standby = new ActiveConsumerLock($persistence->database, $queue, $this->setup->logger);
        $this->standbys[\spl_object_id($standby)] = $standby;
        try {
            if ($this->stops !== $stops) {
                return null;
            }
            $seconds = \min($options->stopAfter ?? \INF, $options->stopWhenEmpty ? ActiveConsumerLock::ALIVE_AFTER : \INF);
            $isMine = $standby->await($options->signals, fn(): bool => $this->setup->transport->isConsumed($queue), $persistence->relay->settleOrder(...), Clock::monotonic() + $seconds);

            return $isMine ? $standby : null;
        } finally {
            unset($this->standbys[\spl_object_id($standby)]);
        }
    }

    /**
     * @param int          $stops   as many as there were when this was asked for
     * @param ActiveConsumerLock|null $standby what says that only this process consumes the queue
     */
    private function receive(string $queue, WorkerOptions $options, int $stops, ?ActiveConsumerLock $standby = null): int
    {
        if ($standby !== null && $this->setup->paused->has($queue)) {
            // While it stood by.
            $this->paused[$queue] = true;

            return 0;
        }
        $consumer = $this->setup->transport->consume($queue, $options->prefetch);
        $handling = $this->handling($consumer, $queue);
        $order = $standby === null ? null : $this->order($consumer, $handling, $queue);
        $breaker = $options->breaker === null ? null : new BreakerState($options->breaker, $queue, $this->setup->logger);
        $worker = new Worker($consumer, $handling, $this->setup->handlers, $this->setup->transport, $queue, $options, $order, $breaker, $this->setup->logger, $this->setup->opener($queue));
        $this->workers[\spl_object_id($worker)] = $worker;
        if ($this->stops !== $stops) {
            $worker->stop();
        }
        $held = $standby?->hold($worker->abort(...));
        $pause = $this->setup->paused->isSupported() ? detach($this->watchPause(...), $queue, $worker) : null;
        $this->setup->persistence?->maintenance->start();
        if ($this->setup->transport instanceof ReportingTransport) {
            $this->report ??= detach($this->report(...), $this->setup->transport);
        }
        $gauges = Native\measured() ? detach(fn() => (new MetricsPoller($this->setup->transport, $this->setup->persistence, $this->setup->logger))->follow($queue)) : null;
        try {
            return $worker->run();
        } finally {
            $held?->cancel('the queue is no longer consumed');
            $pause?->cancel('the queue is no longer consumed');
            $this->paused[$queue] = $worker->wasPaused();
            $gauges?->cancel('the queue is no longer consumed');
            shield(function (): void {
                $this->setup->persistence?->maintenance->stop();
                $this->setup->persistence?->flush();
            });
            unset($this->workers[\spl_object_id($worker)]);
            if ($this->workers === []) {
                $this->report?->cancel('nothing is consumed any more');
                $this->report = null;
            }
        }
    }

    private function order(Consumer $consumer, DeliveryProcessor $handling, string $queue): OrderedProcessor
    {
        \assert($this->setup->persistence !== null);
        $consumer instanceof RemoteConsumer && $consumer->keepOrder();
        $keys = $this->setup->persistence->keys;
        $waiting = $this->handling(new BlockedMessageConsumer($keys, $this->setup->transport, $queue), $queue);

        return new OrderedProcessor($queue, $keys, $consumer, $handling, $waiting, $this->setup->logger);
    }

    private function report(ReportingTransport $transport): void
    {
        try {
            $transport->report($this->setup->logger);
        } catch (CancelledException $cancelled) {
            throw $cancelled;
        } catch (\Throwable $thrown) {
            ErrorLog::write('the logger failed, connection events are no longer logged: ', $thrown->getMessage());
        }
    }

    private function handling(Consumer $consumer, string $queue): DeliveryProcessor
    {
        $setup = $this->setup;
        $shared = $setup->database !== null && $consumer instanceof TransactionalConsumer && $consumer->sharesDatabase($setup->database);
        $direct = $setup->options->guarantee === DeliveryGuarantee::BestEffort && !$shared ? $setup->transport : null;
        $persistence = $setup->options->guarantee === DeliveryGuarantee::Transactional && $setup->database !== null ? $setup->persistence : null;
        $outage = $setup->database === null ? null : new DatabaseOutage($setup->database, $setup->logger);
        $invoker = new Invoker($setup, $direct, $persistence, $queue);
        $dispatcher = new Dispatcher($consumer, $shared ? $consumer : null, $setup, $invoker, $outage, $persistence);
        $suspicion = $persistence === null || $outage === null ? null : new CrashGuard($persistence, $outage, $queue, $setup->logger);
        $swaps = $consumer instanceof TransactionalConsumer && $setup->persistence !== null && $consumer->sharesDatabase($setup->persistence->delayed->database);

        $batches = new BatchDispatcher(
            $consumer,
            $shared ? $consumer : null,
            $setup,
            new BatchInvoker($setup, $shared ? $consumer : null, $direct, $persistence, $queue),
            $dispatcher,
            $outage,
        );

        return new DeliveryProcessor($consumer, $queue, $dispatcher, $batches, $swaps ? $consumer : null, $suspicion, $setup);
    }
}
