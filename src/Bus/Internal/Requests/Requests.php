<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Requests;

use Weft\Bus\BusException;
use Weft\Bus\Header;
use Weft\Bus\Internal\Clock;
use Weft\Bus\Internal\MessageKind;
use Weft\Bus\Internal\Setup;
use Weft\Bus\RequestFailedException;
use Weft\Bus\RequestTimeoutException;
use Weft\Bus\Transport\Consumer;
use Weft\Bus\Transport\Delivery;
use Weft\Bus\Transport\TemporaryQueues;
use Weft\Pool\PoolException;
use Weft\Runtime\CancelledException;
use Weft\Runtime\Mutex;
use Weft\Runtime\Task;
use Weft\Runtime\TimeoutException;
use Weft\Sql\SqlException;

use function Weft\current;
use function Weft\detach;
use function Weft\Native\messageId;
use function Weft\run;
use function Weft\timeout;

/**
 * Sends requests and delivers replies to the waiting tasks. All requests of a bus share one reply queue, which is created with the first.
 *
 * @internal
 */
final class Requests
{
    /** Number of unacknowledged replies. */
    private const PREFETCH = 1000;

    /** @var array<string, PendingRequest> by message id; who no longer waits is not here */
    private array $pending = [];

    private ?string $queue = null;
    private ?Consumer $consumer = null;
    private ?Task $listening = null;

    private readonly Mutex $opening;

    public function __construct(private readonly Setup $setup)
    {
        $this->opening = new Mutex();
    }

    /**
     * @param class-string|null $expected class of the reply, which may also be null
     * @param float             $timeout  seconds
     * @return mixed the reply, decoded
     */
    public function ask(object $message, ?string $expected, float $timeout): mixed
    {
        if (current() === null) {
            return run(fn(): mixed => $this->ask($message, $expected, $timeout));
        }
        $reply = $this->exchange($message, $timeout);
        if ($expected !== null && $reply !== null && !$reply instanceof $expected) {
            $type = $this->setup->codec->of($message::class)->type;
            throw new RequestFailedException("{$type} was answered with " . \get_debug_type($reply) . ", but request(…, reply: …) expects {$expected}");
        }

        return $reply;
    }

    /** The number of waiting requests. */
    public function waiting(): int
    {
        return \count($this->pending);
    }

    public function close(): void
    {
        $this->fail(new RequestFailedException('The bus was closed before the reply arrived'));
        $this->listening?->cancel('the bus is closed');
        $this->consumer?->close();
        if ($this->queue !== null && $this->setup->transport instanceof TemporaryQueues) {
            $this->setup->transport->dropTemporary($this->queue);
        }
        $this->queue = $this->consumer = $this->listening = null;
    }

    private function exchange(object $message, float $timeout): mixed
    {
        $until = Clock::monotonic() + $timeout;
        $request = $this->setup->codec->of($message::class)->type;
        $missing = ': the queue for replies could not be opened';
        try {
            return timeout($timeout, function () use ($message, $timeout, $until, &$request, &$missing): mixed {
                return $this->within($message, $timeout, $until, $request, $missing);
            });
        } catch (TimeoutException $expired) {
            if (Clock::monotonic() < $until) {
                // Another, earlier timeout.
                throw $expired;
            }
            throw new RequestTimeoutException("No reply to {$request} arrived within {$timeout} seconds{$missing}", $expired);
        }
    }

    /**
     * @param string $request its type, then with its id
     * @param string $missing what will not have happened when the time is over; empty for the reply itself
     */
    private function within(object $message, float $timeout, float $until, string &$request, string &$missing): mixed
    {
        $queue = $this->replyQueue();
        $missing = ': its body could not be stored';
        $outgoing = $this->setup->envelopes->wrap(MessageKind::Command, $message, $this->setup->handling(), [
            Header::REPLY_TO => $queue,
            // A later reply would have no receiver.
            Header::EXPIRES_AT => (string) Clock::milliseconds(Clock::now() + $until - Clock::monotonic()),
        ]);
        $id = $outgoing->headers[Header::MESSAGE_ID];
        $this->pending[$id] = $pending = new PendingRequest($outgoing->type);
        $request = "{$outgoing->type} {$id}";
        $missing = ': the broker has not confirmed it';
        try {
            $this->setup->transport->publish([$outgoing]);
            $missing = '';
            $this->setup->stats->sent++;
            if ($pending->reply === null && $pending->failure === null) {
                $pending->settled->wait($until);
            }
        } finally {
            unset($this->pending[$id]);
        }
        if ($pending->failure !== null) {
            throw $pending->failure;
        }

        return $pending->reply === null
            ? throw new RequestTimeoutException("No reply to {$outgoing->type} {$id} arrived within {$timeout} seconds")
            : $this->decoded($pending->reply, $outgoing->type);
    }

    private function decoded(Delivery $reply, string $request): mixed
    {
        if ($reply->type === Replies::ERROR) {
            $error = $reply->headers[Header::ERROR_CLASS] ?? '';
            throw new RequestFailedException("{$request} failed with {$error}: " . ($reply->headers[Header::ERROR_MESSAGE] ?? ''), $error);
        }
        if ($reply->type === Replies::VALUE) {
            return \json_decode($reply->body, true);
        }
        $class = $this->setup->codec->ofType($reply->type)
            ?? throw new RequestFailedException("{$request} was answered with {$reply->type}, which is not registered: pass its class to request(…, reply: …) or in MessageOptions::\$classes");
        try {
            return $this->setup->decoder->decode($class, $reply);
        } catch (\Throwable $thrown) {
            throw new RequestFailedException("The reply to {$request} cannot be decoded: {$thrown->getMessage()}", previous: $thrown);
        }
    }

    private function replyQueue(): string
    {
        if ($this->queue === null || $this->consumer === null) {
            $this->opening->synchronized($this->open(...));
        }
        if ($this->listening === null || $this->listening->isDone()) {
            // The event loop it ran in may have ended.
            $this->listening = detach($this->listen(...), $this->consumer, $this->queue);
        }

        /** @var string what is opened names it */
        return $this->queue;
    }

    /** A queue whose consumer could not be opened is not used again: it may be gone by the next request. */
    private function open(): void
    {
        if ($this->consumer !== null) {
            return;
        }
        $queue = Replies::QUEUES . messageId();
        $transport = $this->setup->transport;
        $transport instanceof TemporaryQueues ? $transport->openTemporary($queue) : $transport->declare($queue, []);
        $this->consumer = $transport->consume($queue, self::PREFETCH);
        $this->queue = $queue;
    }

    private function listen(Consumer $consumer, string $queue): void
    {
        try {
            while (($replies = $consumer->next(self::PREFETCH)) !== []) {
                foreach ($replies as $reply) {
                    $consumer->ack($reply);
                    $pending = $this->pending[$reply->headers[Header::REPLY_TO_MESSAGE] ?? ''] ?? null;
                    if ($pending !== null) {
                        $pending->reply ??= $reply;
                        $pending->settled->notify();
                    }
                }
            }
        } catch (CancelledException $cancelled) {
            throw $cancelled;
        } catch (\Throwable $thrown) {
            if ($this->consumer === $consumer) {
                // The next request opens another one: whether this one still exists depends on the broker and the failure.
                $this->queue = $this->consumer = $this->listening = null;
                $this->fail(new RequestFailedException("Replies can no longer be received: {$thrown->getMessage()}", previous: $thrown));
                $this->discard($consumer, $queue);
            }
        }
    }

    /** Deletes a reply queue. If that fails now, the broker or {@see AbandonedReplyQueues} deletes it later. */
    private function discard(Consumer $consumer, string $queue): void
    {
        try {
            $consumer->close();
            if ($this->setup->transport instanceof TemporaryQueues) {
                $this->setup->transport->dropTemporary($queue);
            }
        } catch (BusException | PoolException | SqlException) {
        }
    }

    private function fail(\Throwable $why): void
    {
        foreach ($this->pending as $pending) {
            $pending->failure = $why;
            $pending->settled->notify();
        }
    }
}
