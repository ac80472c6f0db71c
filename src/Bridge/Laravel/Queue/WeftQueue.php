<?php

declare(strict_types=1);

namespace Weft\Bridge\Laravel\Queue;

use Illuminate\Contracts\Debug\ExceptionHandler;
use Illuminate\Contracts\Queue\ClearableQueue;
use Illuminate\Contracts\Queue\Queue as QueueContract;
use Illuminate\Queue\Queue;
use Weft\Bridge\Laravel\Internal\Buses;
use Weft\Bus\Bus;
use Weft\Bus\Internal\Consuming\RemainingDeliveries;
use Weft\Bus\Internal\Consuming\RemoteConsumer;
use Weft\Bus\MessageDecodingException;
use Weft\Bus\SendOptions;
use Weft\Bus\Transport\Consumer;
use Weft\Bus\Transport\DatabaseTransport;
use Weft\Bus\Transport\Delivery;
use Weft\Bus\UndefinedQueueException;

use function Weft\run;

/**
 * A queue of Laravel on the bus. `artisan weft:work` handles many jobs at once; `artisan queue:work`, one after the other, works too.
 */
final class WeftQueue extends Queue implements ClearableQueue, QueueContract
{
    /** Seconds for a message of a queue that is not empty to arrive from the broker. */
    private const ARRIVAL_TIMEOUT = 0.2;

    private ?Bus $bus = null;

    /** @var array<int, array{\WeakReference<Popped>, Consumer}> jobs that were popped, and their consumers */
    private array $popped = [];

    /** @internal made by {@see WeftConnector} */
    public function __construct(private readonly Buses $buses, private readonly string $default, bool $afterCommit)
    {
        $this->dispatchAfterCommit = $afterCommit;
    }

    /** @param string|null $queue */
    public function size($queue = null): int
    {
        try {
            return $this->bus()->queue($this->name($queue))->depth();
        } catch (UndefinedQueueException) {
            return 0;
        }
    }

    /** @param string|null $queue */
    public function pendingSize($queue = null): int
    {
        return $this->size($queue);
    }

    /** Delayed jobs are not counted by queue. */
    public function delayedSize($queue = null): int
    {
        return 0;
    }

    /** Jobs in flight are not counted. */
    public function reservedSize($queue = null): int
    {
        return 0;
    }

    public function creationTimeOfOldestPendingJob($queue = null): ?int
    {
        return null;
    }

    public function push($job, $data = '', $queue = null): mixed
    {
        return $this->enqueueUsing($job, $this->createPayload($job, $this->name($queue), $data), $queue, null, $this->pushRaw(...));
    }

    /**
     * @param string $payload
     * @param string|null $queue
     * @param array<string, mixed>|null $options
     */
    public function pushRaw($payload, $queue = null, $options = []): string
    {
        return $this->send($payload, $this->name($queue), null);
    }

    public function later($delay, $job, $data = '', $queue = null): mixed
    {
        $send = fn(string $payload, ?string $queue, mixed $delay): string => $this->send($payload, $this->name($queue), (float) $this->secondsUntil($delay));

        return $this->enqueueUsing($job, $this->createPayload($job, $this->name($queue), $data), $queue, $delay, $send);
    }

    /** @param string|null $queue */
    public function pop($queue = null): ?WeftJob
    {
        $name = $this->name($queue);
        $this->declare($name);
        // No consumer of the bus may run that publishes delayed jobs when they are due.
        $this->bus()->admin()->releaseDue();

        // Consumers need an event loop, and queue:work has none.
        run($this->closeConsumers(...));
        while (($taken = run(fn(): ?array => $this->take($name))) !== null) {
            $popped = new Popped($this->bus(), ...$taken);
            $this->popped[] = [\WeakReference::create($popped), $taken[0]];
            try {
                $message = $popped->message(QueueType::message($name));
            } catch (MessageDecodingException $undecodable) {
                run(static fn() => $popped->deadLetter($undecodable, $name));
                $this->container->make(ExceptionHandler::class)->report($undecodable);
                continue;
            }
            if ($taken[1]->redelivered) {
                // A worker had it and has ended, or has lost its connection. As Laravel's own drivers, it counts an attempt when a job is reserved, so
                // that `tries` also ends a job that kills its worker.
                $class = QueueType::message($name);
                $popped->replace(new $class($message->payload, $message->attempts + 1), null);
                continue;
            }

            return new WeftJob($this->container, $this->connectionName, $name, $message, $popped, atOnce: true);
        }

        return null;
    }

    /** @param string|null $queue */
    public function name($queue): string
    {
        return $queue === null || $queue === '' ? $this->default : $queue;
    }

    /** @internal for the command */
    public function buses(): Buses
    {
        return $this->buses;
    }

    /**
     * Deletes the jobs of a queue that wait; for `queue:clear`.
     *
     * @param string $queue
     */
    public function clear($queue): int
    {
        try {
            return $this->bus()->queue($this->name($queue))->purge();
        } catch (UndefinedQueueException) {
            return 0;
        }
    }

    /**
     * Takes one delivery. Its consumer holds no other one: messages that it does not handle are for other workers.
     *
     * @return array{Consumer, Delivery}|null
     */
    private function take(string $queue): ?array
    {
        $transport = $this->buses->transport();
        // Databases are asked by the consumer, which also releases messages of dead ones; they are not in the depth.
        if (!$transport instanceof DatabaseTransport && $transport->depth($queue) === 0) {
            return null;
        }
        $consumer = $transport->consume($queue, 1);
        $delivery = null;
        try {
            [$delivery] = RemainingDeliveries::next($consumer, 1, $consumer instanceof RemoteConsumer ? self::ARRIVAL_TIMEOUT : 0.0) + [null];
            $delivery === null || $consumer->stop();
        } finally {
            $delivery === null && $consumer->close();
        }

        return $delivery === null ? null : [$consumer, $delivery];
    }

    /** Closes the consumers of jobs that are settled, and of jobs whose objects are gone: those come again. */
    private function closeConsumers(): void
    {
        foreach ($this->popped as $key => [$popped, $consumer]) {
            if ($popped->get()?->isSettled() !== false) {
                unset($this->popped[$key]);
                $consumer->close();
            }
        }
    }

    private function send(string $payload, string $queue, ?float $delay): string
    {
        $this->declare($queue);
        $class = QueueType::message($queue);

        return $this->bus()->send(new $class($payload), $delay === null || $delay <= 0.0 ? null : new SendOptions(delay: $delay));
    }

    private function declare(string $queue): void
    {
        $this->buses->once($queue, function () use ($queue): void {
            $handler = QueueType::handler($queue);
            $this->buses->bus(new $handler(null, $this->connectionName, $queue))->queue($queue)->declare();
        });
    }

    private function bus(): Bus
    {
        return $this->bus ??= $this->buses->bus();
    }
}
