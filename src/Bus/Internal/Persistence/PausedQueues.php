<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Persistence;

use Weft\Bus\Internal\Clock;
use Weft\Bus\Internal\Wakeup;
use Weft\Bus\Transport;
use Weft\Bus\Transport\Memory;
use Weft\Pool\PoolException;
use Weft\Sql\Database;
use Weft\Sql\SqlException;
use Weft\Sql\Transaction;

/**
 * Paused queues, which are not consumed until they are resumed: in the database for all processes, with the memory transport in this one.
 *
 * @internal
 */
final class PausedQueues
{
    /** Seconds between two looks for what other processes have paused or resumed. */
    private const CHECK_INTERVAL = 1.0;

    /** @var array<string, true> without a database */
    private array $here = [];

    private readonly Wakeup $changed;

    public function __construct(
        private readonly ?Database $database,
        private readonly Transport $transport,
    ) {
        $this->changed = new Wakeup('the pause or the resumption of a queue');
    }

    public function pause(string $queue): void
    {
        if ($this->database !== null) {
            $this->database->transaction(static function (Transaction $transaction) use ($queue): void {
                $transaction->execute('DELETE FROM weft_paused_queues WHERE queue = ?', [$queue]);
                $transaction->execute('INSERT INTO weft_paused_queues (queue, paused_at) VALUES (?, ?)', [$queue, \time()]);
            });
        } elseif ($this->isSupported()) {
            $this->here[$queue] = true;
        } else {
            throw new \Error("The queue \"{$queue}\" cannot be paused: a pause holds for all processes and survives restarts, and the broker has no place for it. Pass a Database to Bus::connect(), or stop the workers of the queue");
        }
        $this->changed->notify();
    }

    /** @return bool false when it is not paused */
    public function resume(string $queue): bool
    {
        if ($this->database === null) {
            $wasPaused = isset($this->here[$queue]);
            unset($this->here[$queue]);
        } else {
            $wasPaused = $this->database->execute('DELETE FROM weft_paused_queues WHERE queue = ?', [$queue])->affected() > 0;
        }
        $this->changed->notify();

        return $wasPaused;
    }

    public function has(string $queue): bool
    {
        return $this->database === null
            ? isset($this->here[$queue])
            : $this->database->execute('SELECT 1 FROM weft_paused_queues WHERE queue = ?', [$queue])->value() !== null;
    }

    /**
     * Waits until a queue is paused, or resumed, or {@see notify()} is called.
     *
     * @return bool whether it is so
     */
    public function await(string $queue, bool $paused): bool
    {
        $generation = $this->changed->generation;
        try {
            if ($this->has($queue) === $paused) {
                return true;
            }
        } catch (PoolException | SqlException) {
            // While the database is down the queue stays as it is.
        }
        $this->changed->wait(Clock::monotonic() + self::CHECK_INTERVAL, $generation);

        return false;
    }

    /** Whether any queue can be paused. */
    public function isSupported(): bool
    {
        return $this->database !== null || $this->transport instanceof Memory;
    }

    /** Wakes those that wait. */
    public function notify(): void
    {
        $this->changed->notify();
    }
}
