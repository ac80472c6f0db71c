<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Memory;

use Weft\Bus\Transport\Outgoing;

/**
 * What a memory broker is put into by the test kit: it sees what is published and says what goes wrong.
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

    /** Whether the consumer goes away instead of acknowledging, so that everything it holds is delivered again. */
    public function crashes(): bool;
}
