<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Ordering;

use Weft\Runtime\Task;

use function Weft\detach;
use function Weft\signal;

/**
 * Waits until it is this process's turn to consume a queue whose messages are in order.
 *
 * @internal
 */
final class Standby
{
    private const SIGINT = 2;
    private const SIGTERM = 15;

    private bool $stopping = false;

    public function __construct(private readonly Lease $lease) {}

    /** @return bool false when it was told to stop before */
    public function await(bool $signals): bool
    {
        $watch = $signals ? detach(function (): void {
            signal(self::SIGTERM, self::SIGINT);
            $this->stop();
        }) : null;
        try {
            return $this->lease->await(fn(): bool => !$this->stopping);
        } finally {
            $watch?->cancel();
        }
    }

    public function stop(): void
    {
        $this->stopping = true;
    }

    /** @param \Closure(): void $lost */
    public function hold(\Closure $lost): Task
    {
        return detach($this->lease->hold(...), $lost);
    }

    public function release(): void
    {
        $this->lease->release();
    }
}
