<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Sending;

use Weft\Bus\AlreadyScheduledException;
use Weft\Bus\Transport\Outgoing;
use Weft\Sql\Transaction;

/**
 * Stores delayed messages until they are due.
 *
 * @internal
 */
interface DelayStore
{
    /**
     * Refuses what {@see store()} would refuse, for messages that are stored when their handler is done.
     *
     * @param Transaction|null $transaction in which it will be stored
     *
     * @throws AlreadyScheduledException
     */
    public function check(Outgoing $message, float $due, ?Transaction $transaction): void;

    /**
     * Stores a message for all queues bound to its type. It is durable when this returns.
     *
     * @param float $due as microtime(true) has it; may be over
     */
    public function store(Outgoing $message, float $due): void;

    /**
     * Stores a failed message for a delayed retry in its own queue only. One copy per message is stored.
     *
     * @param float $seconds from now
     */
    public function storeRetry(Outgoing $message, string $queue, float $seconds): void;

    /** The number of messages that wait for a retry in a queue; 0 where the store cannot tell them apart. */
    public function retries(string $queue): int;

    /** Deletes the messages that wait for a retry in a queue. */
    public function forgetRetries(string $queue): void;

    /** @return bool false when no message with that id waits: it is unknown, cancelled, or published */
    public function cancel(string $messageId): bool;
}
