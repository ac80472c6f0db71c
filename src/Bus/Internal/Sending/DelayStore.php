<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Sending;

use Weft\Bus\Transport\Outgoing;

/**
 * Where messages wait until it is their time.
 *
 * @internal
 */
interface DelayStore
{
    /**
     * Keeps a message for everybody who is bound to its type. It is safe when this returns.
     *
     * @param float $due as microtime(true) has it; may be over
     */
    public function store(Outgoing $message, float $due): void;

    /**
     * Puts a message off that has failed: it comes back to its own queue and no other. Of one message only one copy waits.
     *
     * @param float $seconds from now
     */
    public function storeRetry(Outgoing $message, string $queue, float $seconds): void;

    /** @return bool false when nothing of that id waits: it was never there, is cancelled, or has left */
    public function cancel(string $messageId): bool;
}
