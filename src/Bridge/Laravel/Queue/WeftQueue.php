<?php

declare(strict_types=1);

namespace Weft\Bridge\Laravel\Queue;

use Illuminate\Contracts\Queue\ClearableQueue;
use Illuminate\Contracts\Queue\Queue as QueueContract;
use Illuminate\Queue\Queue;
use Weft\Bridge\Laravel\Internal\Buses;
use Weft\Bus\Bus;
use Weft\Bus\SendOptions;
use Weft\Bus\Transport\Consumer;
use Weft\Bus\UndefinedQueueException;

/**
 * A queue of Laravel on the bus. `artisan weft:work` handles many jobs at once; `artisan queue:work`, one after the other, works too.
 */
final class WeftQueue extends Queue implements ClearableQueue, QueueContract
{
    private ?Bus $bus = null;

    /** @var array<string, Consumer> of {@see pop()} */
    private array $consumers = [];

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
        $this->consumers[$name] ??= $this->buses->transport()->consume($name, 1);
        foreach ($this->consumers[$name]->next(1, 0.0) as $delivery) {
            /** @var array{payload: string, attempts: int<0, max>} $message */
            $message = \json_decode($delivery->body, true, flags: \JSON_THROW_ON_ERROR);
            $class = QueueType::message($name);
            $source = new Popped($this->bus(), $this->consumers[$name], $delivery);

            return new WeftJob($this->container, $this->connectionName, $name, new $class($message['payload'], $message['attempts']), $source, atOnce: true);
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
        return $this->bus()->queue($this->name($queue))->purge();
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
