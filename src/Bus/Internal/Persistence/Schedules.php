<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Persistence;

use Psr\Log\LoggerInterface;
use Weft\Bus\Internal\Clock;
use Weft\Bus\Internal\Consuming\DatabaseOutage;
use Weft\Bus\Internal\Cron;
use Weft\Bus\Internal\Identifier;
use Weft\Bus\Internal\MessageKind;
use Weft\Bus\Internal\Sending\EnvelopeFactory;
use Weft\Pool\PoolException;
use Weft\Runtime\Internal\Scheduler;
use Weft\Sql\ConstraintViolationException;
use Weft\Sql\Database;
use Weft\Sql\SqlException;
use Weft\Sql\Transaction;

/**
 * Recurring messages. A schedule is its name and the type of its command, so services with one database may choose the same name. Its row
 * stores the latest times that have fired (`fired`), and the second after the last of them (`due`). All times before the first of them count
 * as fired. A worker adds a time and stores the delayed message in the same transaction. Each time therefore yields one message, however
 * many workers there are, also while they have different rules: then the times of all rules fire, also those that a worker reaches after
 * a later time of another rule has fired.
 *
 * @internal
 */
final class Schedules
{
    /** Seconds until a failed schedule is retried. */
    private const RETRY_DELAY = 10.0;

    /**
     * Seconds by which the time until which a schedule has fired may be ahead: the clock may have been set back, by an hour for instance. A time
     * further ahead comes from a clock that was wrong.
     */
    private const MAX_AHEAD = 7_200.0;

    /** Seconds after which a worker looks at the table even if nothing is due: another one may have added a rule, or the clock may have been set. */
    private const CHECK = 60.0;

    /** The length of the column for types. */
    private const TYPE_BYTES = 200;

    /** The most times in `fired`. */
    private const FIRED_TIMES = 60;

    /** @var array<string, array{Cron, \Closure(): object}> by name */
    private array $known = [];

    /** @var array<string, int> the time until which this worker has fired each or found it fired, in seconds since 1970, by name */
    private array $settled = [];

    /** @var array<string, string> the type of the command of each, by name */
    private array $types = [];

    /** @var array<string, float> until when those that have failed wait, by name */
    private array $paused = [];

    /** When to check next, by the monotonic clock, or a test's virtual one. */
    private float $due = 0.0;

    private readonly Dialect $dialect;

    public function __construct(
        private readonly Database $database,
        private readonly DelayedMessages $delayed,
        private readonly EnvelopeFactory $envelopes,
        private readonly LoggerInterface $logger,
    ) {
        $this->dialect = new Dialect($database);
    }

    /**
     * @param \Closure(): object $command makes the message of each time
     * @throws \ValueError when the name is taken
     */
    public function add(string $name, Cron $cron, \Closure $command): void
    {
        if (isset($this->known[$name])) {
            throw new \ValueError("This bus already has a schedule \"{$name}\": each needs a name of its own");
        }
        $this->known[$name] = [$cron, $command];
        $this->due = 0.0;
    }

    /** When a message may be due, by {@see Clock::now()}; null without schedules. */
    public function next(): ?float
    {
        if ($this->known === []) {
            return null;
        }

        return Clock::isVirtual() ? $this->due : Clock::now() + \max(0.0, $this->due - Clock::monotonic());
    }

    /** Fires due schedules. Times missed while no process was running yield one message. */
    public function fire(): void
    {
        if ($this->known === [] || (Clock::isVirtual() ? Clock::now() : Clock::monotonic()) < $this->due) {
            return;
        }
        $now = $this->now();
        /** @var array<string, array<string, array<string, mixed>>> $rows */
        $rows = [];
        foreach ($this->database->execute('SELECT name, type, rule, due, fired FROM weft_schedules')->rows() as $row) {
            $rows[(string) $row['name']][(string) $row['type']] = $row;
        }
        // A test's clock stands still, and no other process has its database.
        $due = Clock::isVirtual() ? \INF : $now + self::CHECK;
        foreach ($this->known as $name => [$cron, $command]) {
            $due = \min($due, $this->attempt((string) $name, $cron, $command, $rows[$name] ?? [], $now));
        }
        $this->due = Clock::isVirtual() ? $due : Clock::monotonic() + $due - $now;
    }

    /** The clock that all workers share: one with a wrong clock of its own would fire for all others. */
    private function now(): float
    {
        return Clock::isVirtual() || !$this->dialect->hasServer()
            ? Clock::now()
            : $this->database->execute("SELECT {$this->dialect->microseconds()}")->value() / 1e6;
    }

    /**
     * @param \Closure(): object                 $command
     * @param array<string, array<string, mixed>> $rows of the name, by type
     * @return float when to look again
     */
    private function attempt(string $name, Cron $cron, \Closure $command, array $rows, float $now): float
    {
        if ($now < ($this->paused[$name] ?? 0.0)) {
            return $this->paused[$name];
        }
        try {
            $type = $this->types[$name] ??= $this->typeOf($command);

            return $this->advance($name, $type, $cron, $command, $rows[$type] ?? $this->adopt($name, $type, $rows), $now);
        } catch (\Throwable $thrown) {
            if (Scheduler::isCancelledBy($thrown)) {
                throw $thrown;
            }
            if (($thrown instanceof SqlException || $thrown instanceof PoolException) && DatabaseOutage::passes($thrown)) {
                throw $thrown;
            }
            // Its command could not be created or stored. Other schedules must not wait for it.
            $this->logger->error('Schedule "{name}" failed, next attempt in {seconds} seconds: {error}', [
                'name' => $name,
                'seconds' => self::RETRY_DELAY,
                'error' => $thrown->getMessage(),
                'exception' => $thrown,
            ]);

            return $this->paused[$name] = $now + self::RETRY_DELAY;
        }
    }

    /**
     * @param \Closure(): object       $command
     * @param array<string, mixed>|null $row
     * @return float when it is due next
     */
    private function advance(string $name, string $type, Cron $cron, \Closure $command, ?array $row, float $now): float
    {
        if ($row === null) {
            $this->settled[$name] ??= (int) $now;
            $this->begin($name, $type, $cron, (int) $now + 1);

            return (float) $cron->after((int) $now);
        }
        $fired = self::fired($row);
        $settled = $this->learn($name, $type, $cron, $row, $fired[0], (int) $now);
        if ($row['due'] > $now + self::MAX_AHEAD) {
            return $this->reset($name, $type, $cron, $row['due'], (int) $now);
        }
        $first = $cron->after($settled);
        if ($first > $now) {
            return (float) $first;
        }
        $last = self::latest($cron, $first, (int) $now);
        if (!\in_array($last, $fired, true) && !$this->store($name, $type, $cron, $command, $row, $last, $now)) {
            // Another worker has advanced the row since, perhaps for a time of another rule.
            return $now;
        }
        $this->settled[$name] = $last;

        return (float) $cron->after($last);
    }

    /**
     * Advances the row and stores the message, unless the row has changed.
     *
     * @param \Closure(): object   $command
     * @param array<string, mixed> $row
     */
    private function store(string $name, string $type, Cron $cron, \Closure $command, array $row, int $time, float $now): bool
    {
        $fired = [...self::fired($row), $time];
        \sort($fired);
        $columns = [$cron->rule, \max($row['due'], $time + 1), \implode(' ', \array_slice($fired, -self::FIRED_TIMES))];

        return $this->database->transaction(function (Transaction $transaction) use ($name, $type, $command, $row, $columns, $now): bool {
            $moved = $transaction->execute('UPDATE weft_schedules SET rule = ?, due = ?, fired = ? WHERE name = ? AND type = ? AND due = ? AND fired = ?', [...$columns, $name, $type, $row['due'], $row['fired']]);
            if ($moved->affected() === 0) {
                return false;
            }
            $made = $command();
            $this->warnOfAnotherType($name, $type, $made);
            $this->delayed->add($transaction, $this->envelopes->wrap(MessageKind::Command, $made, null), \min($now, Clock::now()));

            return true;
        });
    }

    /**
     * A row that has begun or been reset, and one that a worker of 0.1 has advanced, has fired until then, and does not store at which times.
     *
     * @param array<string, mixed> $row
     * @return non-empty-list<int> in ascending order
     */
    private static function fired(array $row): array
    {
        $fired = \array_map('intval', \explode(' ', $row['fired']));

        $last = (int) $row['due'] - 1;

        return \in_array($last, $fired, true) ? $fired : [$last];
    }

    /**
     * Takes over the row of a worker of version 0.1, which knew schedules by name alone.
     *
     * @param array<string, array<string, mixed>> $rows of the name, by type
     * @return array<string, mixed>|null
     */
    private function adopt(string $name, string $type, array $rows): ?array
    {
        $row = $rows[''] ?? null;
        if ($row === null || $this->database->execute("UPDATE weft_schedules SET type = ? WHERE name = ? AND type = ''", [$type, $name])->affected() === 0) {
            return null;
        }

        return $row;
    }

    /**
     * The type of the command that the closure declares to return, otherwise of one that it makes to find out; none if it declares to return
     * different ones, such as `object`: then the schedule is its name alone.
     *
     * @param \Closure(): object $command
     */
    private function typeOf(\Closure $command): string
    {
        $returned = (new \ReflectionFunction($command))->getReturnType();
        if ($returned === null) {
            return $this->fitted($command()::class);
        }
        $class = $returned instanceof \ReflectionNamedType ? $returned->getName() : '';

        return \class_exists($class) && (new \ReflectionClass($class))->isInstantiable() ? $this->fitted($class) : '';
    }

    /** @param class-string $class */
    private function fitted(string $class): string
    {
        return Identifier::fit($this->envelopes->typeOf($class), self::TYPE_BYTES);
    }

    private function warnOfAnotherType(string $name, string $type, object $made): void
    {
        $other = $type === '' ? '' : $this->fitted($made::class);
        if ($other !== $type) {
            $this->logger->warning('Schedule "{name}" makes commands of different types, {type} and {other}: workers that know it by one of them each fire it. Declare object as the return type of its closure', [
                'name' => $name,
                'type' => $type,
                'other' => $other,
            ]);
        }
    }

    /**
     * Takes back what a wrong clock has done. A worker that moves the time fires, so the times until now have had their message.
     *
     * @return float when it is due next
     */
    private function reset(string $name, string $type, Cron $cron, int $due, int $now): float
    {
        $reset = $this->database->execute("UPDATE weft_schedules SET due = ?, fired = '' WHERE name = ? AND type = ? AND due = ?", [$now + 1, $name, $type, $due]);
        if ($reset->affected() === 1) {
            $this->logger->warning('Schedule "{name}" was not due before {due} UTC, because a worker whose clock was ahead has fired it; it is due again from now on, {now} UTC', [
                'name' => $name,
                'due' => \gmdate('Y-m-d H:i:s', $due),
                'now' => \gmdate('Y-m-d H:i:s', $now),
            ]);
        }

        return (float) $cron->after($now);
    }

    /**
     * A rule that no other process knew has no times before it was added. The times of other rules stay due.
     *
     * @param array<string, mixed> $row
     * @param int                  $first of the times that have fired
     * @return int the time until which the times of this rule have fired
     */
    private function learn(string $name, string $type, Cron $cron, array $row, int $first, int $now): int
    {
        $settled = $this->settled[$name] ?? \PHP_INT_MAX;
        if ($settled > $now + self::MAX_AHEAD) {
            // It is new here, or the clock was ahead.
            $settled = $row['rule'] === $cron->rule ? $row['due'] - 1 : $now;
        }
        if ($row['rule'] !== $cron->rule) {
            $this->database->execute('UPDATE weft_schedules SET rule = ? WHERE name = ? AND type = ?', [$cron->rule, $name, $type]);
        }

        return $this->settled[$name] = \max($settled, $first);
    }

    /**
     * The last time of the rule until now. One message makes up for times that were missed: that of the last one, which therefore is the
     * same for all workers with this rule.
     *
     * @param int $time one until now
     */
    private static function latest(Cron $cron, int $time, int $now): int
    {
        // Halved each time, because there may be years of times: none lies between $end and now.
        $end = $now;
        while ($time < $end && $cron->after($time) <= $end) {
            $middle = $time + \intdiv($end - $time, 2);
            $later = $cron->after($middle);
            [$time, $end] = $later <= $end ? [$later, $end] : [$time, $middle];
        }

        return $time;
    }

    private function begin(string $name, string $type, Cron $cron, int $due): void
    {
        try {
            $this->database->execute('INSERT INTO weft_schedules (name, type, rule, due) VALUES (?, ?, ?, ?)', [$name, $type, $cron->rule, $due]);
        } catch (ConstraintViolationException) {
            // Another worker was first; the next check finds its row.
        }
    }
}
