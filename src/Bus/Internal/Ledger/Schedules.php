<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Ledger;

use Psr\Log\LoggerInterface;
use Weft\Bus\Internal\Clock;
use Weft\Bus\Internal\Cron;
use Weft\Bus\Internal\Sending\Envelopes;
use Weft\Bus\Internal\Kind;
use Weft\Runtime\CancelledException;
use Weft\Sql\ConstraintViolation;
use Weft\Sql\Database;
use Weft\Sql\SqlException;
use Weft\Sql\Transaction;

/**
 * Recurring messages. Whichever worker moves a schedule on to its next time puts the message off in the same transaction, so
 * that each time gives one message, however many workers there are.
 *
 * @internal
 */
final class Schedules
{
    /** Seconds until a schedule that has failed is tried again. */
    private const PAUSE = 10.0;

    /** @var array<string, array{Cron, \Closure(): object}> by name */
    private array $known = [];

    /** @var array<string, float> until when those that have failed wait, by name */
    private array $paused = [];

    /** When to look next, as {@see Clock::now()} has it. */
    private float $due = 0.0;

    public function __construct(
        private readonly Database $database,
        private readonly Delayed $delayed,
        private readonly Envelopes $envelopes,
        private readonly LoggerInterface $logger,
    ) {}

    /** @param \Closure(): object $command makes the message of each time */
    public function add(string $name, Cron $cron, \Closure $command): void
    {
        $this->known[$name] = [$cron, $command];
        $this->due = 0.0;
    }

    /** When there may be something to send; null without schedules. */
    public function next(): ?float
    {
        return $this->known === [] ? null : $this->due;
    }

    /** Sends what is due. Times that nobody was there for are made up for by one message. */
    public function fire(): void
    {
        $now = Clock::now();
        if ($this->known === [] || $now < $this->due) {
            return;
        }
        $rows = \array_column($this->database->execute('SELECT name, rule, due FROM weft_schedules')->rows(), null, 'name');
        $due = $now + 60.0;
        foreach ($this->known as $name => [$cron, $command]) {
            $due = \min($due, $this->attempt((string) $name, $cron, $command, $rows[$name] ?? null, $now));
        }
        $this->due = $due;
    }

    /**
     * @param \Closure(): object       $command
     * @param array<string, mixed>|null $row
     * @return float when to look again
     */
    private function attempt(string $name, Cron $cron, \Closure $command, ?array $row, float $now): float
    {
        if ($now < ($this->paused[$name] ?? 0.0)) {
            return $this->paused[$name];
        }
        try {
            return $this->advance($name, $cron, $command, $row, $now);
        } catch (SqlException | CancelledException $exception) {
            throw $exception;
        } catch (\Throwable $thrown) {
            // Its command could not be made. Others must not wait for that.
            $this->logger->error('The schedule "{name}" makes no command and is tried again in {seconds} seconds: {error}', [
                'name' => $name,
                'seconds' => self::PAUSE,
                'error' => $thrown->getMessage(),
                'exception' => $thrown,
            ]);

            return $this->paused[$name] = $now + self::PAUSE;
        }
    }

    /** @param array<string, mixed>|null $row */
    private function advance(string $name, Cron $cron, \Closure $command, ?array $row, float $now): float
    {
        if ($row !== null && $row['rule'] === $cron->rule && $row['due'] > $now) {
            return (float) $row['due'];
        }
        $next = $cron->after((int) $now);
        if ($row === null) {
            $this->begin($name, $cron, $next);

            return (float) $next;
        }
        $fires = $row['rule'] === $cron->rule;
        $this->database->transaction(function (Transaction $transaction) use ($name, $cron, $command, $row, $next, $now, $fires): void {
            $moved = $transaction->execute('UPDATE weft_schedules SET rule = ?, due = ? WHERE name = ? AND rule = ? AND due = ?', [$cron->rule, $next, $name, $row['rule'], $row['due']]);
            if ($moved->affected() === 1 && $fires) {
                $this->delayed->add($transaction, $this->envelopes->wrap(Kind::Command, $command(), null), $now);
            }
        });

        return (float) $next;
    }

    private function begin(string $name, Cron $cron, int $due): void
    {
        try {
            $this->database->execute('INSERT INTO weft_schedules (name, rule, due) VALUES (?, ?, ?)', [$name, $cron->rule, $due]);
        } catch (ConstraintViolation) {
            // Another worker was first; the next look finds its row.
        }
    }
}
