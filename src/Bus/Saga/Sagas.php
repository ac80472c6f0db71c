<?php

declare(strict_types=1);

namespace Weft\Bus\Saga;

use Weft\Bus\Internal\Clock;
use Weft\Bus\Internal\MessageKind;
use Weft\Bus\Internal\Saga\SagaDefinition;
use Weft\Bus\Internal\Saga\SagaRow;
use Weft\Bus\Internal\Saga\SagaStore;
use Weft\Bus\Internal\Sending\Sender;
use Weft\Internal\Number;
use Weft\Sql\Connection;
use Weft\Sql\Transaction;

/** Finds, reopens and deletes the sagas of a bus. A saga class is given by its class name or its saga name. */
final class Sagas
{
    /**
     * @internal made by {@see \Weft\Bus\Admin::sagas()}
     *
     * @param array<string, SagaDefinition> $definitions
     */
    public function __construct(
        private readonly SagaStore $store,
        private readonly array $definitions,
        private readonly Sender $sender,
    ) {}

    /** The stored data of a saga; null when it was not started or has been deleted. */
    public function find(string $saga, string $id): ?SagaRecord
    {
        return $this->store->byId($this->store->database, $this->name($saga), $id)?->record();
    }

    /**
     * The saga object with its stored state. Changing the object changes nothing in the database.
     *
     * @throws SagaNotFoundException
     * @throws InvalidSagaStateException
     */
    public function state(string $saga, string $id): object
    {
        return $this->definition($saga)->restore($this->row($saga, $id));
    }

    /**
     * @param string|null     $saga   only of one class
     * @param SagaStatus|null $status only with one status
     * @param int<1, max>     $limit
     * @return list<SagaRecord> newest first
     */
    public function list(?string $saga = null, ?SagaStatus $status = null, int $limit = 100): array
    {
        if ($limit < 1) {
            throw new \ValueError("The limit must be at least 1, got {$limit}");
        }
        $rows = $this->store->list($saga === null ? null : $this->name($saga), $status, $limit);

        return \array_map(static fn(SagaRow $row): SagaRecord => $row->record(), $rows);
    }

    /**
     * Reopens a saga that has completed, failed or expired, with its last state. {@see SagaReopened} is published afterwards; a crash in
     * between loses the event, unless a transaction is given: then it leaves with its commit, by a bus that consumes with this database.
     *
     * @param float|null       $expires     seconds from now until it expires, above 0, or `INF` for never; null for {@see Saga::$expires}
     * @param string           $reason      stored with the saga and published
     * @param Transaction|null $transaction of the same database, in which the saga is reopened; null for one of its own
     *
     * @throws SagaNotFoundException
     * @throws SagaNotEndedException when it is open
     * @throws SagaConflictException when it was changed at the same time
     */
    public function reopen(string $saga, string $id, ?float $expires = null, string $reason = '', ?Transaction $transaction = null): void
    {
        if ($expires !== null && !($expires > 0.0)) {
            throw new \ValueError('The expiry of a reopened saga must be above 0 seconds, got ' . Number::text($expires));
        }
        $definition = $this->definition($saga);
        $connection = $transaction ?? $this->store->database;
        $row = $this->row($saga, $id, $connection);
        $previous = $row->status();
        if ($previous->isOpen()) {
            throw new SagaNotEndedException("Saga {$row->saga} \"{$id}\" is {$previous->value}, only a saga that has ended can be reopened");
        }
        $reason = \mb_scrub($reason, 'UTF-8');
        $row->reopen($expires ?? $definition->options->expires, $reason);
        $this->store->save($connection, $row);
        if ($definition->options->publishEvents) {
            $event = new SagaReopened($row->saga, $row->id, $reason, $previous);
            $transaction === null ? $this->sender->one(MessageKind::Event, $event) : $this->sender->afterCommit($transaction, $event);
        }
    }

    /**
     * Deletes sagas that ended or expired more than `$before` seconds ago. Later messages for them find no saga.
     *
     * @param float $before seconds, at least 0
     * @return int number of deleted sagas
     */
    public function prune(float $before): int
    {
        if (!($before >= 0.0)) {
            throw new \ValueError('Sagas are deleted a number of seconds of at least 0 after their end, got ' . Number::text($before));
        }
        $time = Clock::milliseconds(Clock::now() - $before);

        return $this->store->database->transaction(fn(Transaction $transaction): int => $this->store->prune($transaction, $time));
    }

    private function row(string $saga, string $id, ?Connection $connection = null): SagaRow
    {
        return $this->store->byId($connection ?? $this->store->database, $this->name($saga), $id)
            ?? throw new SagaNotFoundException("Saga {$this->name($saga)} \"{$id}\" was not started or has been deleted");
    }

    private function definition(string $saga): SagaDefinition
    {
        return $this->definitions[$saga] ?? throw new \ValueError("No saga {$saga} is registered with this bus" . ($this->definitions === [] ? '' : '; registered are ' . \implode(', ', \array_keys($this->definitions))));
    }

    private function name(string $saga): string
    {
        return ($this->definitions[$saga] ?? null)?->name ?? $saga;
    }
}
