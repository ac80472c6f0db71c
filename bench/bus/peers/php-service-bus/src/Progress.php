<?php

declare(strict_types=1);

namespace App;

/** Counts what was handled, and notes when each phase ends. */
final class Progress
{
    public int $commands = 0;
    public int $events = 0;
    /** Concurrency lets the first events overtake the last commands. */
    public int $eventsBeforeLastCommand = 0;
    public float $commandsFinished = 0.0;
    public float $eventsFinished = 0.0;

    /** Called after the last event. */
    public ?\Closure $finished = null;

    public function __construct(private readonly int $total)
    {
    }

    public function commandHandled(): void
    {
        if (++$this->commands === $this->total) {
            $this->commandsFinished = microtime(true);
            $this->eventsBeforeLastCommand = $this->events;
        }
    }

    public function eventHandled(): void
    {
        if (++$this->events === $this->total) {
            ($this->finished)();
        }
    }
}
