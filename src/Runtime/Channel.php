<?php

declare(strict_types=1);

namespace Weft\Runtime;

use Weft\Runtime\Internal\ClosedMarker;
use Weft\Runtime\Internal\WaitQueue;

/**
 * A queue between tasks, first in, first out.
 *
 * A cancelled `send()` has not sent its value, a cancelled `receive()` has not taken one. `foreach` over a channel takes
 * values until it is closed and empty; several tasks may do so at a time.
 *
 * @template T
 *
 * @implements \IteratorAggregate<int, T>
 */
final class Channel implements \IteratorAggregate, \Countable
{
    /** @var \SplQueue<T> */
    private readonly \SplQueue $buffer;
    private readonly WaitQueue $receivers;
    /** Each offers its value through `Coroutine::$handed`. */
    private readonly WaitQueue $senders;
    private bool $closed = false;

    /** @param int $capacity values that the channel buffers, at least 0; with 0 every `send()` waits for its `receive()` */
    public function __construct(private readonly int $capacity = 0)
    {
        if ($capacity < 0) {
            throw new \ValueError("The capacity of a channel must not be negative, got $capacity");
        }
        $this->buffer = new \SplQueue();
        $this->receivers = new WaitQueue('a value from a channel');
        $this->senders = new WaitQueue('room in a channel');
    }

    /**
     * Waits until there is room or a receiver.
     *
     * @param T $value
     *
     * @throws ChannelClosedException the value was not sent
     */
    public function send(mixed $value): void
    {
        if ($this->closed) {
            throw new ChannelClosedException('A value cannot be sent to a closed channel');
        }
        if ($this->receivers->wake($value)) {
            return;
        }
        if (\count($this->buffer) < $this->capacity) {
            $this->buffer->enqueue($value);
        } elseif ($this->senders->wait($value) === ClosedMarker::Closed) {
            throw new ChannelClosedException('The channel was closed before it took the value');
        }
    }

    /**
     * Waits for a value.
     *
     * @return T
     *
     * @throws ChannelClosedException it is closed and empty
     */
    public function receive(): mixed
    {
        $value = $this->next();
        if ($value === ClosedMarker::Closed) {
            throw new ChannelClosedException('The channel is closed and empty');
        }

        return $value;
    }

    /** Buffered values can still be received. Tasks that wait in `send()` or `receive()` get a ChannelClosedException. */
    public function close(): void
    {
        $this->closed = true;
        $this->receivers->wakeAll(ClosedMarker::Closed);
        $this->senders->wakeAll(ClosedMarker::Closed);
    }

    public function isClosed(): bool
    {
        return $this->closed;
    }

    /** The number of buffered values. */
    public function count(): int
    {
        return \count($this->buffer);
    }

    /** @return \Generator<int, T> */
    public function getIterator(): \Generator
    {
        while (($value = $this->next()) !== ClosedMarker::Closed) {
            yield $value;
        }
    }

    private function next(): mixed
    {
        if (!$this->buffer->isEmpty()) {
            $value = $this->buffer->dequeue();
            $sender = $this->senders->first();
            if ($sender !== null) {
                $this->buffer->enqueue($sender->handed);
                $this->senders->wake();
            }

            return $value;
        }
        $sender = $this->senders->first();
        if ($sender !== null) {
            $value = $sender->handed;
            $this->senders->wake();

            return $value;
        }

        return $this->closed ? ClosedMarker::Closed : $this->receivers->wait();
    }
}
