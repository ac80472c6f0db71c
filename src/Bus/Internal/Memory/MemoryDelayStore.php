<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Memory;

use Weft\Bus\AlreadyScheduledException;
use Weft\Bus\Header;
use Weft\Bus\Internal\Clock;
use Weft\Bus\Internal\Sending\DelayStore;
use Weft\Bus\Transport\Outgoing;
use Weft\Sql\Transaction;

/**
 * Delayed messages in the memory of the process. Consumers check it before their queues.
 *
 * @internal
 */
final class MemoryDelayStore implements DelayStore
{
    /** @var array<string, array{float, string|null, Outgoing}> due, queue and message by id */
    private array $waiting = [];

    /**
     * @param \Closure(Outgoing, ?string): void $send    into one queue, or to all that are bound to its type
     * @param \Closure(): void                   $earlier something waits that may be due before everything else
     */
    public function __construct(
        private readonly \Closure $send,
        private readonly \Closure $earlier,
    ) {}

    public function check(Outgoing $message, float $due, ?Transaction $transaction): void
    {
        $id = $message->headers[Header::DELAY_ID] ?? null;
        if ($id !== null && isset($this->waiting[$id])) {
            throw AlreadyScheduledException::of($id);
        }
    }

    public function store(Outgoing $message, float $due): void
    {
        $this->check($message, $due, null);
        $this->add($message->headers[Header::DELAY_ID] ?? $message->headers[Header::MESSAGE_ID] ?? '', $message, null, $due);
    }

    public function storeRetry(Outgoing $message, string $queue, float $seconds): void
    {
        // Two messages may have the same id; neither must be lost.
        $id = ($message->headers[Header::MESSAGE_ID] ?? '') . "@{$queue}@" . \hash('xxh3', "{$message->type}\0{$message->body}");
        $this->add($id, $message, $queue, Clock::now() + $seconds);
    }

    public function retries(string $queue): int
    {
        return \count(\array_filter($this->waiting, static fn(array $waiting): bool => $waiting[1] === $queue));
    }

    public function forgetRetries(string $queue): void
    {
        $this->waiting = \array_filter($this->waiting, static fn(array $waiting): bool => $waiting[1] !== $queue);
    }

    public function cancel(string $messageId): bool
    {
        $isThere = isset($this->waiting[$messageId]);
        unset($this->waiting[$messageId]);

        return $isThere;
    }

    /** When the next message is due, by {@see Clock::now()}; null when none is waiting. */
    public function next(): ?float
    {
        return $this->waiting === [] ? null : (float) \min(\array_map(static fn(array $waiting): float => $waiting[0], $this->waiting));
    }

    /** Publishes due messages. */
    public function release(): void
    {
        if ($this->waiting === []) {
            return;
        }
        $now = Clock::now();
        $due = \array_filter($this->waiting, static fn(array $waiting): bool => $waiting[0] <= $now);
        \uasort($due, static fn(array $one, array $other): int => $one[0] <=> $other[0]);
        foreach ($due as $id => [, $queue, $message]) {
            unset($this->waiting[$id]);
            ($this->send)($message, $queue);
        }
    }

    private function add(string $id, Outgoing $message, ?string $queue, float $due): void
    {
        $this->waiting[$id] = [$due, $queue, $message];
        ($this->earlier)();
    }
}
