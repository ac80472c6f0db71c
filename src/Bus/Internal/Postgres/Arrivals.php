<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Postgres;

use Weft\Bus\Internal\Wakeup;

/**
 * When to look whether there are messages: at once after what this process did, and now and then for what others did.
 *
 * @internal
 */
final class Arrivals
{
    /** Seconds between two looks for what other processes have published. */
    private const TICK = 0.05;

    private readonly Wakeup $arrival;

    public function __construct()
    {
        $this->arrival = new Wakeup('messages in PostgreSQL');
    }

    /** Goes into {@see wait()}, so that what came in between is not missed. */
    public function generation(): int
    {
        return $this->arrival->generation;
    }

    /** @param float|null $until as microtime(true) has it */
    public function wait(?float $until, int $generation): void
    {
        $tick = \microtime(true) + self::TICK;
        $this->arrival->wait($until === null ? $tick : \min($until, $tick), $generation);
    }

    /** This process may have put something into a queue, or has room for more. */
    public function wake(): void
    {
        $this->arrival->notify();
    }
}
