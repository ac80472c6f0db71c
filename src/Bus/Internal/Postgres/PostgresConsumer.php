<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Postgres;

use Weft\Bus\DeadLetters;
use Weft\Bus\Internal\Clock;
use Weft\Bus\Internal\Persistence\Headers;
use Weft\Bus\Internal\Consuming\DatabaseOutage;
use Weft\Bus\PublishException;
use Weft\Bus\Transport\Delivery;
use Weft\Bus\Transport\TransactionalConsumer;
use Weft\Bus\TransportException;
use Weft\Bus\UndefinedQueueException;
use Weft\Pool\PoolException;
use Weft\Sql\ConnectionLostException;
use Weft\Sql\Database;
use Weft\Sql\SqlException;
use Weft\Sql\Transaction;

use function Weft\shield;

/** @internal */
final class PostgresConsumer implements TransactionalConsumer
{
    /** Seconds between two attempts to reach an unavailable server, or locked rows. */
    private const FIRST_PAUSE = 0.05;
    private const LONGEST_PAUSE = 2.0;

    /** Already settled, or owned by another consumer: no message and no consumer has the number 0. */
    private const NOBODYS = [0, 0];

    /** Its id on the server, in the liveness session in which it was registered. */
    private int $id = 0;
    private int $session = 0;

    /**
     * For each unsettled delivery, by tag: the id of the message, and the id of this consumer when it took the message.
     *
     * @var array<int, array{int, int}>
     */
    private array $unsettled = [];

    /** @var array<int, true> by tag, whose handlers have published something in their transactions */
    private array $published = [];

    private int $lastTag = 0;

    /** Whether the last query found messages. */
    private bool $probably = true;

    /** Whether messages may have been taken and the result was lost. */
    private bool $isUnsure = false;

    private bool $away = false;
    private float $pause = self::FIRST_PAUSE;
    private bool $stopped = false;
    private bool $closed = false;

    /** The failure that ended the consumers before this one. It may have been resolved since. */
    private readonly ?\Throwable $formerFailure;

    /** @param \Closure(self): void $forget */
    public function __construct(
        private readonly Store $store,
        private readonly LivenessSession $presence,
        private readonly MessageNotifications $arrivals,
        private readonly AckBatcher $settlements,
        private readonly Vacuum $vacuum,
        private readonly Publisher $publisher,
        private readonly ConnectionEvents $notices,
        private readonly string $queueName,
        private readonly int $queue,
        private readonly int $prefetch,
        private readonly \Closure $forget,
    ) {
        $this->formerFailure = $settlements->failure;
    }

    public function next(int $max, ?float $wait = null): array
    {
        $until = $wait === null ? null : Clock::monotonic() + $wait;
        while (!$this->stopped) {
            $generation = $this->arrivals->generation();
            $deliveries = $this->take($max);
            if ($deliveries !== []) {
                return $deliveries;
            }
            if (($until !== null && Clock::monotonic() >= $until) || $this->stopped) {
                break;
            }
            $this->arrivals->wait($this->away ? \min($until ?? \INF, Clock::monotonic() + $this->pause) : $until, $generation);
        }

        return [];
    }

    public function ack(Delivery $delivery, array $publish = []): void
    {
        [$id, $consumer] = $this->unsettled[$delivery->tag] ?? self::NOBODYS;
        if ($publish !== []) {
            $this->publisher->with($publish, fn(Transaction $transaction) => $this->store->settleIn($transaction, $consumer, $id));
        } elseif ($id !== 0) {
            $this->settlements->ack($consumer, $id);
        }
        $this->forget($delivery);
    }

    public function requeue(Delivery $delivery): void
    {
        [$id, $consumer] = $this->unsettled[$delivery->tag] ?? self::NOBODYS;
        if ($id !== 0) {
            $this->settlements->giveBack($consumer, $id);
            $this->forget($delivery);
        }
    }

    public function deadLetter(Delivery $delivery, array $headers): void
    {
        try {
            $dead = $this->store->queues->id(DeadLetters::queueOf($this->queueName));
            [$id, $consumer] = $this->unsettled[$delivery->tag] ?? self::NOBODYS;
            $this->store->move($consumer, $id, $dead, $headers);
        } catch (PoolException | SqlException | UndefinedQueueException $exception) {
            throw new PublishException("Cannot dead-letter a message of \"{$this->queueName}\": {$exception->getMessage()}", $exception);
        }
        $this->forget($delivery);
    }

    public function sharesDatabase(Database $database): bool
    {
        return $this->store->sharesDatabase($database);
    }

    public function mayDuplicate(): bool
    {
        return true;
    }

    public function enlist(Transaction $transaction, Delivery $delivery, array $publish): void
    {
        if ($publish !== []) {
            $this->publisher->in($transaction, $publish);
            $this->published[$delivery->tag] = true;
        }
        [$id, $consumer] = $this->unsettled[$delivery->tag] ?? self::NOBODYS;
        $this->store->settleIn($transaction, $consumer, $id);
        if ($this->closed) {
            throw new PublishException("The consumer of \"{$this->queueName}\" was closed while it handled a message, which was requeued");
        }
    }

    public function settled(Delivery $delivery): void
    {
        $this->forget($delivery);
        $this->vacuum->died(1);
        if (isset($this->published[$delivery->tag])) {
            unset($this->published[$delivery->tag]);
            $this->arrivals->announce();
        }
    }

    public function stop(): void
    {
        $this->stopped = true;
        $this->arrivals->wake();
    }

    public function close(): void
    {
        if ($this->closed) {
            return;
        }
        $this->stop();
        $this->closed = true;
        shield(function (): void {
            $this->settlements->close();
            try {
                // Also after the session has ended, which others may not have noticed.
                $this->id === 0 || $this->store->release($this->id);
            } catch (PoolException | SqlException) {
                // The lock ends with the session, and other processes then release its messages.
            }
            $this->arrivals->announce();
        });
        ($this->forget)($this);
    }

    /** @return list<Delivery> */
    private function take(int $max): array
    {
        $failure = $this->settlements->failure;
        if ($failure !== null && $failure !== $this->formerFailure) {
            throw $this->failed($failure);
        }
        $room = \min($max, $this->prefetch - \count($this->unsettled));
        if ($room < 1) {
            return [];
        }
        for ($lost = 1; true; $lost++) {
            try {
                $deliveries = shield(fn(): array => $this->claim($room));
                break;
            } catch (PoolException | SqlException $exception) {
                if (!DatabaseOutage::passes($exception)) {
                    throw $this->failed($exception);
                }
                if ($lost > Queues::POOLED || !$exception instanceof ConnectionLostException) {
                    $this->gone($exception);

                    return [];
                }
            }
        }
        if ($this->away) {
            [$this->away, $this->pause] = [false, self::FIRST_PAUSE];
            $this->notices->notice('PostgreSQL is available again, queue "{queue}" is consumed', ['queue' => $this->queueName]);
        }

        return $deliveries;
    }

    /** @return list<Delivery> */
    private function claim(int $room): array
    {
        if ($this->session === 0 || $this->session !== $this->presence->session()) {
            $this->id = $this->presence->enter($this->queue);
            $this->session = $this->presence->session();
            $this->isUnsure = false;
        }
        if ($this->isUnsure) {
            $this->store->giveBackUnknown($this->id, [...\array_column($this->unsettled, 0), ...$this->settlements->of($this->id)]);
        }
        // Only a cheap check while the queue is empty.
        if (!$this->probably && !($this->store->queues->hasReady($this->queue) ?? throw Queues::undefined($this->queueName))) {
            $this->isUnsure = false;

            return [];
        }
        $this->isUnsure = true;
        $rows = $this->store->claim($this->queue, $this->id, $room, $this->unsettled === [] ? null : \min(\array_column($this->unsettled, 0)));
        $this->isUnsure = false;
        $this->probably = $rows !== [];
        $deliveries = [];
        foreach ($rows as $row) {
            $this->unsettled[++$this->lastTag] = [$row['id'], $this->id];
            $deliveries[] = new Delivery($this->lastTag, $row['type'], $row['body'], Headers::decode($row['headers']), $row['redelivered']);
        }

        return $deliveries;
    }

    private function gone(PoolException|SqlException $exception): void
    {
        if (!$this->away) {
            $this->away = true;
            $this->notices->warn('PostgreSQL unavailable; queue "{queue}" is paused: {error}', ['queue' => $this->queueName, 'error' => $exception->getMessage()]);
        } else {
            $this->pause = \min(self::LONGEST_PAUSE, 2 * $this->pause);
        }
    }

    private function forget(Delivery $delivery): void
    {
        if (!isset($this->unsettled[$delivery->tag])) {
            return;
        }
        unset($this->unsettled[$delivery->tag]);
        // Not for every free slot: messages are taken in batches.
        if (\count($this->unsettled) === $this->prefetch - \max(1, $this->prefetch >> 2)) {
            $this->arrivals->wake();
        }
    }

    private function failed(PoolException|SqlException $exception): TransportException
    {
        return new TransportException("Cannot consume queue \"{$this->queueName}\": {$exception->getMessage()}", $exception);
    }
}
