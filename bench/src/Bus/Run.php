<?php

declare(strict_types=1);

namespace Weft\Bench\Bus;

use Weft\Bench\Measured;
use Weft\Bench\Usage;

/** One contender's run through all messages, as it stands in the results file. A failed run has a reason and no numbers. */
final class Run implements Measured
{
    private const NUMBERS = [
        'seconds', 'fill_per_s', 'commands_per_s', 'events_per_s', 'cpu_s', 'broker_cpu_s', 'database_cpu_s', 'rss_mib', 'rows', 'lost', 'duplicates',
    ];

    /** @param array<string, mixed> $fields as in the results file */
    private function __construct(private readonly array $fields)
    {
    }

    /**
     * Lost are commands without a row and events that never came; duplicates are rows beyond one per command, events beyond one
     * per command, and messages left over when the contender had acknowledged all it was waiting for.
     *
     * @param array<string, list<int|float>>|null $timeline see {@see Timeline::toArray()}
     */
    public static function finished(
        Contender $contender,
        int $commands,
        Usage $usage,
        ?ServerCpu $servers,
        Report $report,
        Stored $stored,
        ?array $timeline = null,
    ): self {
        return new self(self::identity($contender) + [
            'seconds' => round($usage->seconds, 3),
            'fill_per_s' => self::rate($commands, $report->fillSeconds),
            'commands_per_s' => self::rate($commands, $report->commandsSeconds),
            'events_per_s' => self::rate($report->eventsAfterCommands(), $report->eventsSeconds),
            'cpu_s' => round($usage->cpuSeconds, 3),
            'broker_cpu_s' => $servers === null ? null : round($servers->broker, 2),
            'database_cpu_s' => $servers === null ? null : round($servers->database, 2),
            'rss_mib' => round($usage->peakMemory, 1),
            'phases_s' => array_map(static fn (float $seconds): float => round($seconds, 3), $report->phases()),
            'timeline' => $timeline,
            'rows' => $stored->rows,
            'lost' => $commands - $stored->customers + max(0, $commands - $report->events),
            'duplicates' => $stored->rows - $stored->customers + max(0, $report->events - $commands) + $stored->queued,
        ]);
    }

    /** @param string $log file that has the contender's error stream */
    public static function failed(Contender $contender, string $reason, string $log): self
    {
        $failure = ['failed' => $reason, 'log' => $log];

        return new self(self::identity($contender) + array_fill_keys(self::NUMBERS, null) + $failure);
    }

    /** @param array<string, mixed> $fields */
    public static function fromArray(array $fields): self
    {
        return new self($fields);
    }

    /** @return array<string, mixed> */
    public function toArray(): array
    {
        return $this->fields;
    }

    /** The same for all runs of one contender. */
    public function contender(): string
    {
        return match ($this->fields['transport']) {
            Transport::Sqlite->value => "{$this->fields['system']} embedded",
            Transport::Postgres->value => "{$this->fields['system']} postgres",
            default => $this->fields['system'] === 'weft' ? "weft {$this->fields['mode']}" : $this->fields['system'],
        };
    }

    /** What its messages and its publishers were told, the same for all runs of one cell of the matrix. */
    public function cell(): string
    {
        return ($this->fields['persistent'] ? 'persistent' : 'transient') . ', confirms ' . ($this->fields['confirms'] ? 'on' : 'off');
    }

    public function failure(): ?string
    {
        return $this->fields['failed'] ?? null;
    }

    /** What came out, in a few words. */
    public function outcome(): string
    {
        return match (true) {
            $this->failure() !== null => "FAILED: {$this->failure()}",
            !$this->isPerfect() => sprintf('WRONG: lost %d, duplicates %d', $this->number('lost'), $this->number('duplicates')),
            default => sprintf('%.2f s, %s commands/s', $this->number('seconds'), number_format($this->number('commands_per_s') ?? 0)),
        };
    }

    public function isPerfect(): bool
    {
        return $this->failure() === null && $this->fields['lost'] === 0 && $this->fields['duplicates'] === 0;
    }

    /** @param string $name of a number in the results file; null when the phase was too short to measure or the run failed */
    public function number(string $name): float|int|null
    {
        return $this->fields[$name] ?? null;
    }

    /** @return array<string, mixed> */
    private static function identity(Contender $contender): array
    {
        return [
            'system' => $contender->system,
            'mode' => $contender->mode->value,
            'transport' => $contender->transport->value,
            'persistent' => $contender->isPersistent(),
            'confirms' => $contender->mode->confirms(),
        ];
    }

    private static function rate(int $messages, float $seconds): ?float
    {
        return $messages > 0 && $seconds > 0 ? round($messages / $seconds, 1) : null;
    }
}
