<?php

declare(strict_types=1);

namespace Weft\Bus\Transport;

use Weft\Bus\DeadLetters;
use Weft\Bus\Internal\Clock;
use Weft\Bus\Internal\Memory\MemoryConsumer;
use Weft\Bus\Internal\Memory\MemoryDelayStore;
use Weft\Bus\Internal\Memory\MemoryQueue;
use Weft\Bus\Internal\Memory\FaultInjector;
use Weft\Bus\UndefinedQueueException;
use Weft\Bus\UnroutableMessageException;

/** A broker inside one process, for tests: prefetch, acknowledgement and redelivery as in the others, nothing is durable. */
final class Memory implements DelayingTransport, TemporaryQueues
{
    /** Seconds until a due message that has no queue is tried again. */
    private const UNDELIVERABLE_DELAY = 1.0;

    /** @var array<string, MemoryQueue> */
    private array $queues = [];

    /** @var array<string, array<string, MemoryQueue>> by type and queue */
    private array $bindings = [];

    /** @var array<int, MemoryConsumer> open ones */
    private array $consumers = [];

    private readonly MemoryDelayStore $delays;

    /** @param FaultInjector|null $faults of a test, see {@see \Weft\Testing\TestBus}; null for none */
    public function __construct(private readonly ?FaultInjector $faults = null)
    {
        $this->delays = new MemoryDelayStore(
            function (Outgoing $message, ?string $queue): void {
                try {
                    $queue === null ? $this->publish([$message]) : $this->put($queue, [$message]);
                } catch (UnroutableMessageException) {
                    // The message stays until a queue is declared for it.
                    $this->delays->store($message, Clock::now() + self::UNDELIVERABLE_DELAY);
                } catch (UndefinedQueueException) {
                    $this->delays->storeRetry($message, (string) $queue, self::UNDELIVERABLE_DELAY);
                }
            },
            function (): void {
                foreach ($this->queues as $queue) {
                    $queue->arrival->notify();
                }
            },
        );
    }

    /** @internal */
    public function delays(): MemoryDelayStore
    {
        return $this->delays;
    }

    public function declare(string $queue, array $types): void
    {
        $declared = $this->queues[$queue] ??= new MemoryQueue($queue, $this->faults);
        $dead = DeadLetters::queueOf($queue);
        $this->queues[$dead] ??= new MemoryQueue($dead);
        foreach ($types as $type) {
            $this->bindings[$type][$queue] = $declared;
        }
    }

    public function openTemporary(string $queue): void
    {
        $this->queues[$queue] = new MemoryQueue($queue);
    }

    public function dropTemporary(string $queue): void
    {
        unset($this->queues[$queue]);
    }

    public function delete(string $queue): void
    {
        unset($this->queues[$queue], $this->queues[DeadLetters::queueOf($queue)]);
        foreach ($this->bindings as $type => $queues) {
            unset($this->bindings[$type][$queue]);
        }
    }

    public function publish(iterable $messages, bool $confirmed = true): void
    {
        $lost = null;
        foreach ($messages as $message) {
            $queues = $this->bindings[$message->type] ?? [];
            for ($copies = $this->faults?->published($message) ?? 1; $copies > 0; $copies--) {
                foreach ($queues as $queue) {
                    $queue->push($message->type, $message->body, $message->headers);
                }
            }
            $lost = $queues === [] && $message->mustRoute ? $message : $lost;
        }
        if ($lost !== null) {
            throw UnroutableMessageException::of($lost->type, 'this in-memory broker');
        }
    }

    public function put(string $queue, array $messages): void
    {
        $into = $this->queue($queue);
        foreach ($messages as $message) {
            $into->push($message->type, $message->body, $message->headers);
        }
    }

    public function consume(string $queue, int $prefetch): Consumer
    {
        $dead = $this->queues[DeadLetters::queueOf($queue)] ?? null;
        $consumer = new MemoryConsumer($this, $this->queue($queue), $dead, $prefetch, $dead === null ? null : $this->faults);

        return $this->consumers[\spl_object_id($consumer)] = $consumer;
    }

    public function depth(string $queue): int
    {
        return $this->queue($queue)->depth();
    }

    public function isConsumed(string $queue): bool
    {
        $consumed = $this->queue($queue);
        foreach ($this->consumers as $consumer) {
            if ($consumer->consumes($consumed)) {
                return true;
            }
        }

        return false;
    }

    public function close(): void
    {
        foreach ($this->consumers as $consumer) {
            $consumer->close();
        }
    }

    /** @internal for a consumer that closes */
    public function forget(MemoryConsumer $consumer): void
    {
        unset($this->consumers[\spl_object_id($consumer)]);
    }

    private function queue(string $name): MemoryQueue
    {
        return $this->queues[$name] ?? throw new UndefinedQueueException("Queue \"{$name}\" is not declared in this in-memory broker");
    }
}
