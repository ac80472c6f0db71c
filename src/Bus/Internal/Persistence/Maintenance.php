<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Persistence;

use Psr\Log\LoggerInterface;
use Weft\Bus\Internal\Clock;
use Weft\Bus\InboxOptions;
use Weft\Internal\Jitter;
use Weft\Runtime\CancelledException;
use Weft\Runtime\Task;
use Weft\Sql\Database;

use function Weft\delay;
use function Weft\detach;

/**
 * Looks after the ledger while a bus consumes: sends what was left behind, what is due, and forgets what is old. Every worker
 * does; they take different rows.
 *
 * @internal
 */
final class Maintenance
{
    /** Seconds between two looks for messages that other processes have put off. */
    private const TICK = 0.25;

    /** Seconds between two looks at the outbox, a quarter more or less. */
    private const LOOK = 1.0;

    /** Seconds between two purges of the inbox, a quarter more or less. */
    private const PURGE = 60.0;
    private const PURGE_ROWS = 5_000;

    /** Longest pause after failures. */
    private const LONGEST_PAUSE = 10.0;

    /** @var list<Task> */
    private array $tasks = [];

    private int $users = 0;

    public function __construct(
        private readonly Database $database,
        private readonly OutboxRelay $relay,
        private readonly DelayedMessages $delayed,
        private readonly Schedules $schedules,
        private readonly InboxOptions $options,
        private readonly LoggerInterface $logger,
    ) {}

    public function start(): void
    {
        if ($this->users++ === 0) {
            $this->tasks = [
                detach(fn() => $this->again('relay', $this->look(...))),
                detach(fn() => $this->again('clock', $this->tick(...))),
                detach(fn() => $this->again('purge', $this->purge(...))),
            ];
        }
    }

    /** Returns when what it was about to send is sent. */
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
                // As asked for.
            }
        }
    }

    /**
     * Forgets messages that were handled so long ago that they are not delivered again.
     *
     * @return int rows deleted
     */
    public function prune(): int
    {
        $dialect = new Dialect($this->database);
        $before = \time() - (int) $this->options->retention;
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
        $pause = self::TICK;
        while (true) {
            try {
                $turn();
                $pause = self::TICK;
            } catch (CancelledException $cancelled) {
                throw $cancelled;
            } catch (\Throwable $thrown) {
                // Whatever it is: without it nothing would be sent any more, and nobody would know.
                $this->logger->warning('The background task "{name}" of the bus failed and is retried: {error}', ['name' => $name, 'error' => $thrown->getMessage(), 'exception' => $thrown]);
                delay($pause);
                $pause = \min(self::LONGEST_PAUSE, 2 * $pause);
            }
        }
    }

    private function look(): void
    {
        $this->relay->look();
        // At random, so that the workers do not look all at once.
        delay(Jitter::around(self::LOOK, 0.25));
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
        $this->delayed->earlier->wait(Clock::monotonic() + \min(self::TICK, ($next ?? \INF) - $now), $generation);
    }

    private function purge(): void
    {
        delay(Jitter::around(self::PURGE, 0.25));
        $this->prune();
    }
}
