<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Requests;

use Weft\Bus\Internal\Clock;

/**
 * Deletes the reply queues of processes that have ended without closing their bus, where the broker does not do so itself. A queue that has
 * just been created has no consumer yet, nor has one whose process is connecting again: it must be without one in two checks in a row.
 *
 * @internal
 */
final class AbandonedReplyQueues
{
    /** Seconds between two checks. */
    private const CHECK_INTERVAL = 60.0;

    /** @var list<string> without a consumer at the last check */
    private array $suspects = [];

    private float $checkedAt = 0.0;

    /**
     * @param \Closure(): list<string> $unconsumed names of all reply queues without a consumer
     * @param \Closure(string): void   $drop
     */
    public function __construct(
        private readonly \Closure $unconsumed,
        private readonly \Closure $drop,
    ) {}

    /** Called once a second. */
    public function tick(): void
    {
        if (Clock::monotonic() - $this->checkedAt >= self::CHECK_INTERVAL) {
            $this->checkedAt = Clock::monotonic();
            $this->check();
        }
    }

    public function check(): void
    {
        $unconsumed = ($this->unconsumed)();
        foreach (\array_intersect($unconsumed, $this->suspects) as $queue) {
            ($this->drop)($queue);
        }
        $this->suspects = $unconsumed;
    }
}
