<?php

declare(strict_types=1);

namespace Weft\Bridge\Laravel\Internal;

use Illuminate\Contracts\Debug\ExceptionHandler;
use Illuminate\Foundation\Application;
use Psr\Log\LoggerInterface;
use Weft\Bus\Bus;
use Weft\Bus\Internal\Clock;
use Weft\Bus\Internal\Wakeup;
use Weft\Workers\Internal\Signal;

use function Weft\delay;
use function Weft\detach;
use function Weft\shield;
use function Weft\signal;

/**
 * Controls a running worker from outside: `queue:restart` ends it, maintenance mode pauses it. Both are looked at once a second; Laravel's own
 * worker does so between two jobs.
 *
 * @internal
 */
final class WorkerControl
{
    private const CHECK_INTERVAL = 1.0;

    /** Where Laravel's `queue:restart` puts the time. */
    private const RESTART = 'illuminate:queue:restart';

    private readonly mixed $lastRestart;

    private bool $isEnding = false;

    private bool $isDown = false;

    /** Whether the cache could not be read: that is reported once. */
    private bool $isBlind = false;

    private readonly Wakeup $changed;

    /** @param bool $force whether it works in maintenance mode as well */
    public function __construct(private readonly Application $application, private readonly bool $force, private readonly LoggerInterface $logger)
    {
        $this->changed = new Wakeup('the end of the maintenance mode');
        $this->lastRestart = $this->restart();
        $this->look();
        // A worker that is paused for maintenance has no consumer that a signal ends.
        detach(function (): void {
            signal(Signal::SIGTERM->value, Signal::SIGINT->value);
            $this->isEnding = true;
            $this->changed->notify();
        });
    }

    /** Whether the worker has nothing more to do: it was restarted, or a signal came. */
    public function isEnding(): bool
    {
        return $this->isEnding;
    }

    /** Whether it must not take jobs, because the application is in maintenance mode. */
    public function isDown(): bool
    {
        return $this->isDown;
    }

    /** Stops the bus when the worker is to end or to pause; jobs in flight finish. Until then, it does not return. */
    public function stopInTime(Bus $bus): void
    {
        while (!$this->isEnding && !$this->isDown) {
            delay(self::CHECK_INTERVAL);
            $this->look();
        }
        $bus->stop();
    }

    /**
     * Waits while the application is in maintenance mode.
     *
     * @param float|null $until by {@see Clock::monotonic()}
     *
     * @return bool false when the worker is to end, or the time is over
     */
    public function awaitUp(?float $until): bool
    {
        if ($this->isDown) {
            $this->logger->notice('The application is in maintenance mode, the worker takes no jobs');
        }
        while ($this->isDown && !$this->isEnding) {
            if ($until !== null && Clock::monotonic() >= $until) {
                return false;
            }
            $this->changed->wait(\min($until ?? \INF, Clock::monotonic() + self::CHECK_INTERVAL));
            $this->look();
            $this->isDown || $this->logger->notice('The application is no longer in maintenance mode, the worker takes jobs');
        }

        return !$this->isEnding;
    }

    /** Shielded: what a store of the cache throws when its wait is cancelled would be taken for a failure of the store. */
    private function look(): void
    {
        shield($this->lookNow(...));
    }

    private function lookNow(): void
    {
        try {
            $this->isDown = !$this->force && $this->application->isDownForMaintenance();
            if (!$this->isEnding && $this->restart() !== $this->lastRestart) {
                $this->isEnding = true;
                $this->logger->notice('queue:restart was called, the worker ends when its jobs in flight have finished');
            }
            $this->isBlind = false;
        } catch (\Throwable $thrown) {
            // The worker stays as it is while the store of the cache is down.
            $this->isBlind || $this->application->make(ExceptionHandler::class)->report($thrown);
            $this->isBlind = true;
        }
    }

    private function restart(): mixed
    {
        return $this->application->make('cache')->driver()->get(self::RESTART);
    }
}
