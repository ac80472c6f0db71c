<?php

declare(strict_types=1);

namespace Weft\Bus;

use Weft\Bus\Internal\Consuming\Receiver;
use Weft\Bus\Internal\Identifier;
use Weft\Bus\Internal\Setup;

/**
 * Administers one queue; made by {@see Bus::queue()}.
 *
 * ```php
 * $queue = $bus->queue('orders');
 * $queue->declare();
 * $queue->deadLetters()->retry();
 * echo $queue->depth();
 * ```
 */
final class Queue
{
    /** @internal made by {@see Bus::queue()} */
    public function __construct(
        public readonly string $name,
        private readonly Setup $setup,
        private readonly Receiver $receiver,
    ) {}

    /**
     * Creates what is missing: the queue, its dead-letter queue, a binding for each message type that has a handler here, and with a
     * database the tables `weft_*`. {@see Bus::consume()} does the same.
     *
     * @throws TopologyConflictException when the queue exists with other arguments
     */
    public function declare(): void
    {
        $this->receiver->declare($this->name);
    }

    /**
     * Declares the queue and binds further message types to it, which have no handler here: for a queue that another program consumes.
     *
     * @param string ...$types message classes, or names of types, 1 to 200 bytes of UTF-8 without NUL
     *
     * @throws \ValueError when a name is invalid
     */
    public function bind(string ...$types): void
    {
        $names = \array_map(fn(string $type): string => \class_exists($type) ? $this->setup->codec->of($type)->type : $type, $types);
        foreach ($names as $name) {
            Identifier::check('The name of a message type', $name, 200);
        }
        $this->declare();
        $this->setup->transport->declare($this->name, \array_values($names));
    }

    /**
     * Lists what {@see declare()} would create or find.
     *
     * @return list<string> one line each
     */
    public function plan(): array
    {
        return $this->receiver->plan($this->name);
    }

    /**
     * The number of messages that are ready for delivery. Unacknowledged messages do not count.
     *
     * @throws UndefinedQueueException
     */
    public function depth(): int
    {
        return $this->setup->transport->depth($this->name);
    }

    /**
     * Deletes every message that is ready for delivery. Unacknowledged messages stay. In a queue of dead letters, the keys of ordered messages that
     * they have blocked are released, as by {@see DeadLetters::delete()}.
     *
     * @return int number of deleted messages
     *
     * @throws UndefinedQueueException
     */
    public function purge(): int
    {
        return $this->receiver->purge($this->name);
    }

    /**
     * Deletes the queue, its dead-letter queue and its pause. A consumer of it ends, or declares it again.
     *
     * Its messages are also those in the database or in memory: those that wait for a retry or behind a blocked key. Retries that wait in
     * RabbitMQ, without a database, are neither counted nor deleted; they go to the queue `weft.unrouted` when they are due.
     *
     * @param bool $withMessages also when there are messages, which are lost
     *
     * @throws QueueNotEmptyException
     * @throws TransportException
     */
    public function delete(bool $withMessages = false): void
    {
        $this->setup->persistence?->prepare();
        // Each of the two may be gone, and the database may still have messages of it.
        $messages = self::countOf($this->depth(...));
        $letters = self::countOf($this->deadLetters()->count(...));
        $retries = $this->setup->delays?->retries($this->name) ?? 0;
        $blocked = $this->setup->persistence?->keys->waitingIn($this->name) ?? 0;
        if (!$withMessages && $messages + $letters + $retries + $blocked > 0) {
            throw new QueueNotEmptyException("Queue \"{$this->name}\" has {$messages} messages, {$letters} dead letters, {$retries} delayed retries and {$blocked} messages behind blocked keys: consume them, or delete it with its messages");
        }
        $this->setup->transport->delete($this->name);
        $this->setup->delays?->forgetRetries($this->name);
        $this->setup->persistence?->keys->forgetQueue($this->name);
        $this->setup->paused->resume($this->name);
    }

    /** @param \Closure(): int $count */
    private static function countOf(\Closure $count): int
    {
        try {
            return $count();
        } catch (UndefinedQueueException) {
            return 0;
        }
    }

    /**
     * Stops the consumption of the queue in all processes with the same database, within about a second, until {@see resume()} is called, also
     * across restarts. Handlers in flight finish; messages wait in the queue.
     *
     * @throws \Error                   without a database, unless the transport is in memory
     * @throws UndefinedQueueException when the queue is not declared
     */
    public function pause(): void
    {
        $this->setup->persistence?->prepare();
        if ($this->setup->paused->isSupported()) {
            $this->requireDeclared();
        }
        $this->setup->paused->pause($this->name);
    }

    private function requireDeclared(): void
    {
        try {
            $this->depth();
        } catch (TransportException) {
            // The broker is unavailable, which may be why the queue is to be paused.
        }
    }

    /**
     * Continues the consumption of a paused queue, in all processes within about a second.
     *
     * @return bool false when the queue is not paused
     */
    public function resume(): bool
    {
        $this->setup->persistence?->prepare();

        return $this->setup->paused->resume($this->name);
    }

    /** Whether the queue is paused. */
    public function isPaused(): bool
    {
        $this->setup->persistence?->prepare();

        return $this->setup->paused->has($this->name);
    }

    /** Lists, retries, edits and deletes the messages that could not be handled. */
    public function deadLetters(): DeadLetters
    {
        return new DeadLetters($this->setup->transport, $this->name, $this->setup->persistence);
    }

    /**
     * The blocked keys of ordered messages ({@see OrderedBy}): those with a failed message.
     *
     * @return list<BlockedKey> the longest blocked first
     */
    public function blockedKeys(): array
    {
        $this->setup->persistence?->prepare();

        return $this->setup->persistence?->keys->blocked($this->name) ?? [];
    }

    /**
     * Releases a blocked key without its failed message. The messages behind it are handled in order, within about a second when the
     * queue is consumed. To continue with the failed message use {@see DeadLetters::retry()}.
     *
     * @return bool false when the key is not blocked
     */
    public function releaseKey(string $key): bool
    {
        $this->setup->persistence?->prepare();

        return $this->setup->persistence?->keys->release($this->name, $key) ?? false;
    }
}
