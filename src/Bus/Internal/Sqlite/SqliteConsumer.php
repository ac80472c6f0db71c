<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Sqlite;

use Weft\Bus\DeadLetters;
use Weft\Bus\Internal\Clock;
use Weft\Bus\Internal\Persistence\Headers;
use Weft\Bus\PublishException;
use Weft\Bus\Transport\Delivery;
use Weft\Bus\Transport\TransactionalConsumer;
use Weft\Bus\UndefinedQueueException;
use Weft\Pool\PoolException;
use Weft\Runtime\Task;
use Weft\Sql\Database;
use Weft\Sql\SqlException;
use Weft\Sql\Transaction;

use function Weft\detach;

/** @internal */
final class SqliteConsumer implements TransactionalConsumer
{
    /** Seconds between two checks for dead consumers. */
    private const CHECK_INTERVAL = 1.0;

    /** @var array<int, int> claim by delivery tag, of deliveries that were claimed and not settled */
    private array $unsettled = [];

    /** @var array<int, int> unsettled deliveries by claim */
    private array $open = [];

    /** @var list<Delivery> claimed and not handed out: a claim that was given up comes as a whole */
    private array $ahead = [];

    /** @var list<int> acknowledged and not deleted */
    private array $acks = [];

    private int $batch = 0;
    private float $checkedAt = 0.0;
    private bool $flushing = false;
    private bool $probably = true;
    private bool $stopped = false;
    private bool $closed = false;
    private ?Task $watch = null;

    private function __construct(
        private readonly Store $store,
        private readonly string $queueName,
        private readonly int $queue,
        private readonly int $prefetch,
        private readonly int $id,
        private readonly ?Lock $lock,
    ) {}

    public static function open(Store $store, string $queue, int $prefetch): self
    {
        $queueId = $store->queueId($queue);
        $lock = $store->file === '' ? null : Lock::create($store->file);

        return new self($store, $queue, $queueId, $prefetch, $store->register($queueId, $lock?->path ?? ''), $lock);
    }

    public function next(int $max, ?float $wait = null): array
    {
        $until = $wait === null ? null : Clock::monotonic() + $wait;
        while (!$this->stopped) {
            $generation = $this->store->arrival->generation;
            $deliveries = $this->take($max);
            if ($deliveries !== []) {
                return $deliveries;
            }
            if (($until !== null && Clock::monotonic() >= $until) || $this->stopped) {
                break;
            }
            $this->waitForMore($until, $generation);
        }

        return [];
    }

    public function ack(Delivery $delivery, array $publish = []): void
    {
        if ($publish !== []) {
            $this->store->settle($delivery, $publish);
            $this->forget($delivery);

            return;
        }
        $this->acks[] = $delivery->tag;
        $this->forget($delivery);
        $this->flush();
    }

    public function requeue(Delivery $delivery): void
    {
        $this->store->move($delivery->tag, $this->queueName, $delivery->headers, redelivered: true);
        $this->forget($delivery);
    }

    public function deadLetter(Delivery $delivery, array $headers): void
    {
        try {
            $this->store->move($delivery->tag, DeadLetters::queueOf($this->queueName), $headers, redelivered: false);
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
        return false;
    }

    public function enlist(Transaction $transaction, Delivery $delivery, array $publish): void
    {
        $this->store->settleIn($transaction, $delivery, $publish);
        if ($this->closed) {
            throw new PublishException("The consumer of \"{$this->queueName}\" was closed while it handled a message, which was requeued");
        }
    }

    public function settled(Delivery $delivery): void
    {
        $this->forget($delivery);
        $this->store->arrival->notify();
    }

    public function stop(): void
    {
        $this->stopped = true;
        $this->store->arrival->notify();
    }

    public function close(): void
    {
        if ($this->closed) {
            return;
        }
        $this->stop();
        $this->closed = true;
        $this->watch?->cancel('the consumer is closed');
        $this->flush();
        $this->store->release($this->id);
        $this->lock?->release();
    }

    /** @return list<Delivery> */
    private function take(int $max): array
    {
        $room = \min($max, $this->prefetch - \count($this->unsettled) + \count($this->ahead));
        if ($room < 1) {
            return [];
        }
        if ($this->ahead === []) {
            $this->releaseDead();
            // Only a cheap check while the queue is empty: an empty claim would wake other processes.
            if (!$this->probably && !($this->store->hasReady($this->queue) ?? throw $this->store->undefined($this->queueName))) {
                return [];
            }
            $this->claim($room);
        }

        /** @var list<Delivery> */
        return \array_splice($this->ahead, 0, $room);
    }

    private function claim(int $max): void
    {
        $finished = \array_keys($this->open, 0, true);
        $rows = $this->store->claim($this->queue, $this->id, ++$this->batch, $max, $finished);
        foreach ($finished as $claim) {
            unset($this->open[$claim]);
        }
        $this->probably = $rows !== [];
        foreach ($rows as $row) {
            $claim = $this->unsettled[$row['id']] = $row['claim'];
            $this->open[$claim] = ($this->open[$claim] ?? 0) + 1;
            $this->ahead[] = new Delivery($row['id'], $row['type'], $row['body'], Headers::decode($row['headers']), $row['redelivered'] !== 0);
        }
    }

    private function forget(Delivery $delivery): void
    {
        $claim = $this->unsettled[$delivery->tag] ?? null;
        if ($claim === null) {
            return;
        }
        unset($this->unsettled[$delivery->tag]);
        $this->open[$claim]--;
        if (\count($this->unsettled) === $this->prefetch - 1) {
            $this->store->arrival->notify();
        }
    }

    /** The first acknowledgement deletes the rows of all that follow meanwhile. */
    private function flush(): void
    {
        if ($this->flushing) {
            return;
        }
        $this->flushing = true;
        try {
            while ($this->acks !== []) {
                $ids = $this->acks;
                $this->acks = [];
                $this->deleteOrKeep($ids);
            }
        } finally {
            $this->flushing = false;
        }
    }

    /** @param list<int> $ids */
    private function deleteOrKeep(array $ids): void
    {
        try {
            $this->store->delete($ids);
        } catch (\Throwable $thrown) {
            \array_push($this->acks, ...$ids);
            throw $thrown;
        }
    }

    private function waitForMore(?float $until, int $generation): void
    {
        // Detached: no scope of the caller should wait for it.
        if ($this->watch === null || $this->watch->isDone()) {
            $this->watch = detach($this->watch(...));
        }
        $check = Clock::monotonic() + self::CHECK_INTERVAL;
        $this->store->arrival->wait($until === null ? $check : \min($until, $check), $generation);
    }

    private function watch(): void
    {
        try {
            $this->store->waitForChange();
        } catch (PoolException | SqlException) {
            // The next statement of next() reports it.
        } finally {
            $this->watch = null;
            $this->store->arrival->notify();
        }
    }

    private function releaseDead(): void
    {
        if (Clock::monotonic() - $this->checkedAt < self::CHECK_INTERVAL) {
            return;
        }
        $this->checkedAt = Clock::monotonic();
        $this->probably = $this->store->releaseAbandoned() || $this->probably;
        $this->store->abandoned->tick();
    }
}
