<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Memory;

use Weft\Bus\Transport\Outgoing;

/**
 * Injects faults into a memory broker, for the test kit, and observes what is published.
 *
 * @internal
 */
interface FaultInjector
{
    /** @return positive-int how often the message arrives in each of its queues */
    public function published(Outgoing $message): int;

    /**
     * @param positive-int $ready how many messages wait in a queue
     * @return int<0, max> which of them is delivered next; 0 is the oldest
     */
    public function next(int $ready): int;

    /** Whether the consumer ends instead of acknowledging, so that all of its messages are redelivered. */
    public function crashes(): bool;
}
