<?php

declare(strict_types=1);

namespace Weft\Bench\Bus;

use Weft\Bench\BenchmarkException;

/**
 * The one line of JSON a contender prints when it has acknowledged the last event. Besides the numbers every contender gives there
 * are two that count as 0 and as unknown when they are missing: events_overlapped, events acknowledged before the last command was
 * handled, and queued, messages left in the queue.
 */
final class Report
{
    private function __construct(
        public readonly float $fillSeconds,
        public readonly float $commandsSeconds,
        public readonly float $eventsSeconds,
        public readonly int $events,
        public readonly int $eventsOverlapped,
        public readonly ?int $queued,
    ) {
    }

    /** @return array{fill: float, commands: float, events: float} seconds */
    public function phases(): array
    {
        return ['fill' => $this->fillSeconds, 'commands' => $this->commandsSeconds, 'events' => $this->eventsSeconds];
    }

    /** Events acknowledged between the last command and the last event. */
    public function eventsAfterCommands(): int
    {
        return $this->events - $this->eventsOverlapped;
    }

    /** @throws BenchmarkException when the output is not such a line */
    public static function parse(string $output): self
    {
        $report = json_decode(trim($output), true);
        foreach (['fill_seconds', 'commands_seconds', 'events_seconds', 'commands', 'events'] as $key) {
            is_numeric($report[$key] ?? null)
                || throw new BenchmarkException("its output has no number $key: " . json_encode(substr($output, 0, 200)));
        }

        return new self(
            (float) $report['fill_seconds'],
            (float) $report['commands_seconds'],
            (float) $report['events_seconds'],
            (int) $report['events'],
            (int) ($report['events_overlapped'] ?? 0),
            isset($report['queued']) ? (int) $report['queued'] : null,
        );
    }
}
