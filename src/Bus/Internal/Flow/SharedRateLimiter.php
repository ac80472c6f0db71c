<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Flow;

use Weft\Bus\Internal\Clock;
use Weft\Bus\Internal\Consuming\HandlingInterruptedException;
use Weft\Bus\Internal\Consuming\Worker;
use Weft\Bus\Internal\Persistence\Dialect;
use Weft\Bus\RateLimit;
use Weft\Runtime\Mutex;
use Weft\Sql\Connection;
use Weft\Sql\Database;
use Weft\Sql\Transaction;
use Weft\Sql\UniqueViolationException;

/**
 * A rate limit that all processes with a database share. The row stores how far ahead calls are reserved. A process reserves calls for
 * {@see RESERVE_AHEAD} seconds at a time, and more only when the last of them is near. However many handlers wait, a process therefore has
 * reserved at most two such portions.
 *
 * @internal
 */
final class SharedRateLimiter
{
    /** Seconds for which calls are reserved in advance. */
    private const RESERVE_AHEAD = 0.1;

    /** @var \SplQueue<float> turns taken, by the monotonic clock */
    private readonly \SplQueue $turns;

    /** The last reserved call, by the monotonic clock. */
    private float $last = 0.0;

    private readonly Mutex $taking;
    private readonly Dialect $dialect;
    private readonly SharedClock $clock;

    public function __construct(
        private readonly Database $database,
        private readonly string $name,
        private readonly RateLimit $limit,
    ) {
        $this->turns = new \SplQueue();
        $this->taking = new Mutex();
        $this->dialect = new Dialect($database);
        $this->clock = new SharedClock();
    }

    /**
     * @return float when it is, by the monotonic clock
     * @throws HandlingInterruptedException when the worker is stopped before it is known
     */
    public function turn(Worker $worker): float
    {
        // First come, first served.
        return $this->taking->synchronized(function () use ($worker): float {
            while (true) {
                $turn = $this->next();
                if ($turn !== null) {
                    return $turn;
                }
                $worker->waitUntil($this->last - self::RESERVE_AHEAD);
                $this->take();
            }
        });
    }

    /** Reserved calls that were not used in time are lost, except for a burst. */
    private function next(): ?float
    {
        $oldest = Clock::monotonic() - $this->limit->burst / $this->limit->perSecond - self::RESERVE_AHEAD;
        while (!$this->turns->isEmpty()) {
            $turn = $this->turns->dequeue();
            if ($turn >= $oldest) {
                return $turn;
            }
        }

        return null;
    }

    private function take(): void
    {
        $count = (int) \max(1, \ceil($this->limit->perSecond * self::RESERVE_AHEAD));
        $step = 1e6 / $this->limit->perSecond;
        $reserve = fn(Transaction $transaction): ?int => $this->reserve($transaction, (int) \round($count * $step), (int) (($this->limit->burst - 1) * $step));
        $ahead = $this->database->transaction($reserve);
        while ($ahead === null) {
            $this->begin();
            $ahead = $this->database->transaction($reserve);
        }
        $first = Clock::monotonic() + $ahead / 1e6;
        for ($turn = 0; $turn < $count; $turn++) {
            $this->turns->enqueue($this->last = $first + $turn * $step / 1e6);
        }
    }

    /**
     * @param int $taken microseconds of turns
     * @param int $burst microseconds they may lie in the past
     * @return int|null microseconds until the first turn, below 0 within a burst; null when there is no row yet
     */
    private function reserve(Transaction $transaction, int $taken, int $burst): ?int
    {
        $row = $transaction->execute("SELECT reserved_us, clock_us FROM weft_rate_limits WHERE name = ?{$this->dialect->forUpdate()}", [$this->name])->first();
        if ($row === null) {
            return null;
        }
        $now = $this->now($transaction);
        $first = \max($row['reserved_us'] - $this->clock->elapsed($row['clock_us'], $now, \hrtime(true) / 1e3), -$burst);
        $transaction->execute('UPDATE weft_rate_limits SET reserved_us = ?, clock_us = ? WHERE name = ?', [$first + $taken, $now, $this->name]);

        return $first;
    }

    /** Outside of a transaction: in MariaDB two transactions that found no row would wait for each other. */
    private function begin(): void
    {
        try {
            $this->database->execute('INSERT INTO weft_rate_limits (name, reserved_us, clock_us) VALUES (?, 0, ?)', [$this->name, $this->now($this->database)]);
        } catch (UniqueViolationException) {
            // Another process was first.
        }
    }

    /** Microseconds of a clock that all processes share: the database server's, or else the machine's monotonic clock. */
    private function now(Connection $connection): int
    {
        return $this->dialect->hasServer()
            ? $connection->execute("SELECT {$this->dialect->microseconds()}")->value()
            : \intdiv((int) \hrtime(true), 1_000);
    }
}
