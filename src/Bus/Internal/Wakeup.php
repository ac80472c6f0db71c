<?php

declare(strict_types=1);

namespace Weft\Bus\Internal;

use Weft\Runtime\Internal\WaitQueue;
use Weft\Runtime\TimeoutException;

use function Weft\timeout;

/**
 * Lets tasks wait for a change. A wake-up carries no data, so tasks check again, and it is lost if no task is waiting.
 *
 * @internal
 */
final class Wakeup
{
    /** Counts wake-ups, so that one before the wait is not missed. */
    public int $generation = 0;

    private readonly WaitQueue $queue;

    /** @param string $subject completes "the task waits for …" */
    public function __construct(string $subject)
    {
        $this->queue = new WaitQueue($subject);
    }

    /**
     * @param float|null $until by {@see Clock::monotonic()}; null waits without limit
     * @param int|null   $since a generation; does not wait when there was a wake-up after it
     * @return bool false when the time is over
     */
    public function wait(?float $until = null, ?int $since = null): bool
    {
        if ($since !== null && $since !== $this->generation) {
            return true;
        }
        if ($until === null) {
            $this->queue->wait();

            return true;
        }
        $left = $until - Clock::monotonic();
        if ($left <= 0.0) {
            return false;
        }
        $generation = $this->generation;
        try {
            timeout($left, $this->queue->wait(...));
        } catch (TimeoutException) {
            return $this->generation !== $generation;
        }

        return true;
    }

    public function notify(): void
    {
        $this->generation++;
        $this->queue->wakeAll();
    }
}
