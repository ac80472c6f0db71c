<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Persistence;

use Psr\Log\LoggerInterface;
use Weft\Bus\Internal\Clock;
use Weft\Bus\InboxOptions;
use Weft\Internal\Jitter;
use Weft\Runtime\CancelledException;
use Weft\Runtime\Internal\Scheduler;
use Weft\Runtime\Task;
use Weft\Sql\Database;

use function Weft\delay;
use function Weft\detach;

/**
 * Background tasks of a consuming bus: the outbox relay, delayed messages and schedules, the lease of the broker, and the deletion of old rows. Every worker
 * runs them; they work on different rows.
 *
 * @internal
 */
final class Maintenance
{
    /** Seconds between two checks for delayed messages of other processes. */
    private const DELAYED_INTERVAL = 0.25;

    /** Seconds between two passes of the outbox relay, plus or minus a quarter. */
    private const OUTBOX_INTERVAL = 1.0;

    /** Seconds between two purges of the inbox, plus or minus a quarter. */
    private const PURGE_INTERVAL = 60.0;
    private const PURGE_ROWS = 5_000;

    /** Seconds between two searches for expired sagas, plus or minus a quarter. */
    private const SAGA_EXPIRY_INTERVAL = 5.0;

    /** Longest pause after failures. */
    private const LONGEST_PAUSE = 10.0;

    /** @var list<Task> */
    private array $tasks = [];

    private int $users = 0;

    /** @var (\Closure(): mixed)|null ends sagas that have expired */
    private ?\Closure $expire = null;

    public function __construct(
        private readonly Database $database,
        private readonly OutboxRelay $relay,
        private readonly DelayedMessages $delayed,
        private readonly Schedules $schedules,
        private readonly BrokerLease $broker,
        private readonly InboxOptions $options,
        private readonly LoggerInterface $logger,
    ) {}

    /** @param \Closure(): mixed $expire ends sagas that have expired */
    public function expireBy(\Closure $expire): void
    {
        $this->expire = $expire;
    }

    public function start(): void
    {
        if ($this->users++ === 0) {
            $this->tasks = [
                detach(fn() => $this->again('relay', $this->look(...))),
                detach(fn() => $this->again('clock', $this->tick(...))),
                detach(fn() => $this->again('purge', $this->purge(...))),
            ];
            if ($this->expire !== null) {
                $this->tasks[] = detach(fn() => $this->again('expiry', $this->expire(...)));
            }
        }
    }

    /** Returns when messages that are being published are complete. */
    public function stop(): void
    {
        if (--$this->users > 0) {
            return;
        }
        [$tasks, $this->tasks] = [$this->tasks, []];
        foreach ($tasks as $task) {
            $task->cancel('the bus no longer consumes');
        }
        foreach ($tasks as $task) {
            try {
                $task->await();
            } catch (CancelledException) {
                // Expected.
            }
        }
    }

    /**
     * Deletes inbox rows of messages that are no longer redelivered.
     *
     * @return int rows deleted
     */
    public function prune(): int
    {
        $dialect = new Dialect($this->database);
        // Not by this machine's clock: one that is ahead would delete rows that other workers need.
        $before = $dialect->unixTimeBefore($this->options->retention);
        $deleted = 0;
        foreach ([['weft_inbox', 'handled_at'], ['weft_redeliveries', 'updated_at']] as [$table, $column]) {
            do {
                $rows = $this->database->execute($dialect->deleteBelow($table, 'message_id, consumer', $column, self::PURGE_ROWS), [$before])->affected();
                $deleted += $rows;
            } while ($rows === self::PURGE_ROWS);
        }

        return $deleted;
    }

    /** @param \Closure(): void $turn does its work and waits for the next time */
    private function again(string $name, \Closure $turn): never
    {
        $pause = self::DELAYED_INTERVAL;
        while (true) {
            try {
                $turn();
                $pause = self::DELAYED_INTERVAL;
            } catch (\Throwable $thrown) {
                if (Scheduler::isCancelledBy($thrown)) {
                    throw $thrown;
                }
                // Any exception: without this task nothing would be published, unnoticed.
                $this->logger->warning('The background task "{name}" of the bus failed and is retried: {error}', ['name' => $name, 'error' => $thrown->getMessage(), 'exception' => $thrown]);
                delay($pause);
                $pause = \min(self::LONGEST_PAUSE, 2 * $pause);
            }
        }
    }

    private function look(): void
    {
        $this->relay->look();
        // With jitter, so that the workers do not query at the same time.
        delay(Jitter::around(self::OUTBOX_INTERVAL, 0.25));
    }

    private function tick(): void
    {
        $generation = $this->delayed->earlier->generation;
        $this->schedules->fire();
        $next = $this->delayed->next();
        $now = Clock::now();
        if ($next !== null && $next <= $now) {
            $this->delayed->release();

            return;
        }
        $this->delayed->earlier->wait(Clock::monotonic() + \min(self::DELAYED_INTERVAL, ($next ?? \INF) - $now), $generation);
    }

    private function expire(): void
    {
        $this->expire === null || ($this->expire)();
        delay(Jitter::around(self::SAGA_EXPIRY_INTERVAL, 0.25));
    }

    private function purge(): void
    {
        delay(Jitter::around(self::PURGE_INTERVAL, 0.25));
        $this->broker->hold();
        $this->prune();
    }
}
