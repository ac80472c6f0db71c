<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Flow;

use Weft\Bus\Internal\Ledger\Dialect;
use Weft\Bus\RateLimit;
use Weft\Runtime\Mutex;
use Weft\Sql\Database;
use Weft\Sql\Transaction;
use Weft\Sql\UniqueViolation;

/**
 * A rate that all processes with a database share: it says when the next turn is, by its own clock, and a process takes several
 * at a time.
 *
 * @internal
 */
final class SharedRate
{
    /** Seconds for which turns are taken in advance. */
    private const ADVANCE = 0.1;

    /** Microseconds the next turn may lie ahead. More than all processes could have taken is a clock that was set back. */
    private const AHEAD = 60_000_000;

    /** @var \SplQueue<float> turns taken, by the monotonic clock */
    private readonly \SplQueue $turns;

    private readonly Mutex $taking;
    private readonly Dialect $dialect;

    public function __construct(
        private readonly Database $database,
        private readonly string $name,
        private readonly RateLimit $limit,
    ) {
        $this->turns = new \SplQueue();
        $this->taking = new Mutex();
        $this->dialect = new Dialect($database);
    }

    /** @return float when it is, by the monotonic clock */
    public function turn(): float
    {
        return $this->next() ?? $this->taking->synchronized(function (): float {
            while (($turn = $this->next()) === null) {
                $this->take();
            }

            return $turn;
        });
    }

    /** Turns that nobody has used in time are gone, but for a burst. */
    private function next(): ?float
    {
        $oldest = \hrtime(true) / 1e9 - $this->limit->burst / $this->limit->perSecond - self::ADVANCE;
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
        $count = (int) \max(1, \ceil($this->limit->perSecond * self::ADVANCE));
        $step = 1e6 / $this->limit->perSecond;
        [$first, $now] = $this->database->transaction(fn(Transaction $transaction): array => $this->reserve($transaction, (int) \round($count * $step), (int) (($this->limit->burst - 1) * $step)));
        $here = \hrtime(true) / 1e9;
        for ($turn = 0; $turn < $count; $turn++) {
            $this->turns->enqueue($here + ($first - $now + $turn * $step) / 1e6);
        }
    }

    /**
     * @param int $taken microseconds of turns
     * @param int $burst microseconds they may lie in the past
     * @return array{int, int} the first turn and the time, in microseconds by the database's clock
     */
    private function reserve(Transaction $transaction, int $taken, int $burst): array
    {
        $now = $transaction->execute("SELECT {$this->dialect->microseconds()}")->value();
        $moved = $transaction->execute('UPDATE weft_rates SET next = (CASE WHEN next < ? THEN ? WHEN next > ? THEN ? ELSE next END) + ? WHERE name = ?', [
            $now - $burst, $now - $burst, $now + self::AHEAD, $now, $taken, $this->name,
        ]);
        if ($moved->affected() === 0) {
            try {
                $transaction->transaction(fn(Transaction $inner) => $inner->execute('INSERT INTO weft_rates (name, next) VALUES (?, ?)', [$this->name, $now]));
            } catch (UniqueViolation) {
                // Another process was first.
            }

            return $this->reserve($transaction, $taken, $burst);
        }

        return [$transaction->execute('SELECT next FROM weft_rates WHERE name = ?', [$this->name])->value() - $taken, $now];
    }
}
