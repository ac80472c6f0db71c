<?php

declare(strict_types=1);

namespace Weft\Examples\Customers;

/**
 * What was counted in the end, and whether it is what it should be.
 */
final class Verdict
{
    public function __construct(
        private readonly int $commands,
        private readonly int $rows,
        private readonly int $distinct,
        private readonly int $events,
        private readonly int $eventsRepeated,
        /** Events handled by a start that was killed before it could save which ones it had seen. */
        private readonly int $eventsUncounted,
        private readonly int $dead,
        private readonly int $left,
    ) {
    }

    public function isGood(): bool
    {
        return $this->rows === $this->commands
            && $this->distinct === $this->commands
            && $this->events + $this->eventsUncounted === $this->commands
            && $this->eventsRepeated === 0
            && $this->dead === 0
            && $this->left === 0;
    }

    /** @return list<string> */
    public function lines(): array
    {
        $lines = [\sprintf(
            '%s %s rows, %s events, %s lost, %s duplicates',
            $this->isGood() ? '✓' : '✗',
            \number_format($this->rows),
            \number_format($this->events),
            \number_format($this->commands - $this->distinct),
            \number_format($this->rows - $this->distinct + $this->eventsRepeated),
        )];
        if ($this->eventsUncounted > 0) {
            $lines[] = \sprintf('  %s more events were handled by a start that was killed before it could note them', \number_format($this->eventsUncounted));
        }
        if ($this->dead > 0 || $this->left > 0) {
            $lines[] = \sprintf('  %s dead letters, %s messages still in the queue', \number_format($this->dead), \number_format($this->left));
        }

        return $lines;
    }
}
