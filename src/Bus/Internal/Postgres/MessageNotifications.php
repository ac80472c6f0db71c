<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Postgres;

use Weft\Bus\Internal\Clock;
use Weft\Bus\Internal\Wakeup;
use Weft\Pool\PoolException;
use Weft\Runtime\Task;
use Weft\Sql\Database;
use Weft\Sql\Listener;
use Weft\Sql\Notification;
use Weft\Sql\SqlException;
use Weft\Sql\Transaction;

use function Weft\current;
use function Weft\delay;
use function Weft\detach;
use function Weft\shield;

/**
 * Decides when to query for messages: immediately after changes by this process, on notifications of other processes, and periodically.
 *
 * A notification is a hint in a transaction of its own: PostgreSQL serialises commits with notifications.
 *
 * @internal
 */
final class MessageNotifications
{
    private const CHANNEL = 'weft_messages';

    /** Seconds between two queries with notifications, and without. */
    private const TICK = 1.0;
    private const TICK_ALONE = 0.05;

    /** Seconds in which several publishes share one notification. */
    private const TOGETHER = 0.002;

    /** Seconds before listening is tried again. */
    private const PAUSE = 1.0;

    private readonly Wakeup $arrival;
    private readonly string $own;
    private ?Listener $listener = null;
    private ?Task $listening = null;
    private ?Task $announcement = null;
    private bool $again = false;

    public function __construct(private readonly Database $database)
    {
        $this->arrival = new Wakeup('messages in PostgreSQL');
        $this->own = \bin2hex(\random_bytes(8));
    }

    public function end(): void
    {
        $this->listening?->cancel('nothing is consumed any more');
        $this->listening = null;
        $this->listener?->close();
        $this->listener = null;
    }

    /** Passed to {@see wait()}, so that no change in between is missed. */
    public function generation(): int
    {
        return $this->arrival->generation;
    }

    /**
     * Listens from the first wait on: the connection is not needed before.
     *
     * @param float|null $until as {@see Clock::monotonic()} has it
     */
    public function wait(?float $until, int $generation): void
    {
        $this->listening ??= detach($this->listen(...));
        $tick = Clock::monotonic() + ($this->listener === null ? self::TICK_ALONE : self::TICK);
        $this->arrival->wait($until === null ? $tick : \min($until, $tick), $generation);
    }

    /** This process has capacity for more messages, or stops. */
    public function wake(): void
    {
        $this->arrival->notify();
    }

    /** Messages were published: other processes may wait for them. */
    public function announce(): void
    {
        $this->wake();
        if (current() === null) {
            // Without an event loop nothing runs beside the caller.
            $this->tell();

            return;
        }
        $this->again = true;
        if ($this->announcement === null || $this->announcement->isDone()) {
            // Detached, because a hint needs no waiter.
            $this->announcement = detach(fn() => shield($this->notify(...)));
        }
    }

    private function notify(): void
    {
        while ($this->again) {
            delay(self::TOGETHER);
            $this->again = false;
            $this->tell();
        }
    }

    private function tell(): void
    {
        try {
            $this->database->transaction(function (Transaction $transaction): void {
                $transaction->execute('SET LOCAL synchronous_commit = off');
                $transaction->notify(self::CHANNEL, $this->own);
            });
        } catch (PoolException | SqlException) {
            // Consumers query after a second.
        }
    }

    private function listen(): void
    {
        while (true) {
            try {
                $this->listener = $this->database->listen(self::CHANNEL);
                $this->arrival->notify();
                foreach ($this->listener as $news) {
                    if (!$news instanceof Notification || $news->payload !== $this->own) {
                        $this->arrival->notify();
                    }
                }

                return;
            } catch (PoolException | SqlException) {
                $this->listener?->close();
                $this->listener = null;
            }
            delay(self::PAUSE);
        }
    }
}
