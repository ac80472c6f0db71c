<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Postgres;

use Weft\Bus\Internal\Bindings;
use Weft\Bus\Internal\Wakeup;
use Weft\Bus\PublishException;
use Weft\Bus\Transport\Outgoing;
use Weft\Bus\UnroutableMessageException;
use Weft\Pool\PoolException;
use Weft\Sql\SqlException;
use Weft\Sql\Transaction;

use function Weft\shield;

/**
 * Inserts messages. Messages published while a statement runs share the next one.
 *
 * @internal
 */
final class Publisher
{
    /** Messages per transaction. */
    private const BATCH = 1000;

    /** @var list<PendingPublish> */
    private array $waiting = [];

    private bool $working = false;
    private readonly Wakeup $done;

    public function __construct(
        private readonly Store $store,
        private readonly MessageNotifications $arrivals,
    ) {
        $this->done = new Wakeup('messages on their way to PostgreSQL');
    }

    /**
     * @param iterable<Outgoing> $messages
     * @throws UnroutableMessageException|PublishException
     */
    public function publish(iterable $messages): void
    {
        $lost = null;
        $batch = [];
        foreach ($messages as $message) {
            $batch[] = $message;
            if (\count($batch) === self::BATCH) {
                $lost = $this->batch($batch) ?? $lost;
                $batch = [];
            }
        }
        $lost = $batch === [] ? $lost : $this->batch($batch) ?? $lost;
        if ($lost !== null) {
            throw Queues::noQueueFor($lost);
        }
    }

    /**
     * @param list<Outgoing> $messages
     * @throws PublishException|\Weft\Bus\UndefinedQueueException
     */
    public function put(string $queue, array $messages): void
    {
        $this->guard("to queue \"{$queue}\"", fn() => $this->store->insertInto($this->store->database, $queue, $messages));
        $this->arrivals->announce();
    }

    /**
     * Publishes in one transaction with what the closure does.
     *
     * @param list<Outgoing>             $messages
     * @param \Closure(Transaction): mixed $work
     * @throws UnroutableMessageException|PublishException nothing has happened
     */
    public function with(array $messages, \Closure $work): void
    {
        $this->guard('', fn() => $this->store->database->transaction(function (Transaction $transaction) use ($messages, $work): void {
            $this->in($transaction, $messages);
            $work($transaction);
        }));
        $this->arrivals->announce();
    }

    /**
     * Publishes as part of a transaction whose end is up to the caller.
     *
     * @param list<Outgoing> $messages
     * @throws UnroutableMessageException nothing was published
     */
    public function in(Transaction $transaction, array $messages): void
    {
        $lost = $this->store->queues->unroutable($messages, $transaction);
        if ($lost !== null) {
            throw Queues::noQueueFor($lost);
        }
        $this->store->insert($transaction, $messages);
    }

    /**
     * @param non-empty-list<Outgoing> $messages
     * @return Outgoing|null one that must be routed and has no queue
     */
    private function batch(array $messages): ?Outgoing
    {
        $this->waiting[] = $publication = new PendingPublish($messages);
        try {
            while (!$publication->done) {
                $this->working ? $this->done->wait() : $this->work();
            }
        } finally {
            if (!$publication->done) {
                // Cancelled. Messages that no statement has taken yet are not published later.
                $this->waiting = \array_values(\array_filter($this->waiting, static fn(PendingPublish $other): bool => $other !== $publication));
            }
        }
        if ($publication->failure !== null) {
            throw $publication->failure instanceof PoolException || $publication->failure instanceof SqlException
                ? new PublishException("Cannot publish in PostgreSQL: {$publication->failure->getMessage()}", $publication->failure)
                : $publication->failure;
        }

        return $publication->lost;
    }

    private function work(): void
    {
        $this->working = true;
        $publications = $this->waiting;
        $this->waiting = [];
        try {
            shield(fn() => $this->insert($publications));
        } finally {
            $this->working = false;
            $this->done->notify();
            $this->arrivals->announce();
        }
    }

    /** @param list<PendingPublish> $publications */
    private function insert(array $publications): void
    {
        $messages = \array_merge(...\array_column($publications, 'messages'));
        try {
            $routed = $this->store->insertAll($messages);
            foreach ($publications as $publication) {
                $publication->lost = Bindings::firstUnrouted($publication->messages, $routed);
            }
        } catch (\Throwable $thrown) {
            if (\count($publications) > 1) {
                // A batch that fails is repeated one by one, so that only the cause fails.
                foreach ($publications as $publication) {
                    $this->insert([$publication]);
                }

                return;
            }
            $publications[0]->failure = $thrown;
        }
        foreach ($publications as $publication) {
            $publication->done = true;
        }
    }

    /**
     * @template T
     * @param \Closure(): T $work
     * @return T
     */
    private function guard(string $where, \Closure $work): mixed
    {
        try {
            return $work();
        } catch (PoolException | SqlException $exception) {
            throw new PublishException(\rtrim("Cannot publish {$where}") . " in PostgreSQL: {$exception->getMessage()}", $exception);
        }
    }
}
