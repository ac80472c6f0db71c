<?php

declare(strict_types=1);

namespace Weft\Bus\Saga;

use Weft\Bus\Internal\Clock;
use Weft\Bus\Internal\MessageKind;
use Weft\Bus\Internal\Saga\SagaDefinition;
use Weft\Bus\Internal\Saga\SagaRow;
use Weft\Bus\Internal\Saga\SagaStore;
use Weft\Bus\Internal\Sending\Sender;
use Weft\Sql\Transaction;

/** The sagas of a bus, to look at, to reopen and to forget. Where a saga is asked for, its class and its name are both good. */
final class Sagas
{
    /**
     * @internal made by {@see \Weft\Bus\Bus::sagas()}
     *
     * @param array<string, SagaDefinition> $definitions
     */
    public function __construct(
        private readonly SagaStore $store,
        private readonly array $definitions,
        private readonly Sender $sender,
    ) {}

    /** What is known of a saga; null when it was never started or is forgotten. */
    public function find(string $saga, string $id): ?SagaRecord
    {
        return $this->store->byId($this->store->database, $this->name($saga), $id)?->record();
    }

    /**
     * The saga itself, as its last message left it. What is changed in the object changes nothing.
     *
     * @throws SagaNotFound
     * @throws SagaStateInvalid
     */
    public function state(string $saga, string $id): object
    {
        return $this->definition($saga)->restore($this->row($saga, $id));
    }

    /**
     * @param string|null     $saga   of one class only
     * @param SagaStatus|null $status in one status only
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
     * Lets a saga that has completed, failed or expired take messages again, with the properties it had at its end.
     * {@see SagaReopened}, where it is announced, is published afterwards: a crash in between loses it.
     *
     * @param float|null $expires seconds from now after which it expires; null for what {@see Saga::$expires} says
     *
     * @throws SagaNotFound
     * @throws SagaNotEnded when it is open
     * @throws SagaConflict when it was changed at the same time
     */
    public function reopen(string $saga, string $id, ?float $expires = null): void
    {
        $definition = $this->definition($saga);
        $row = $this->row($saga, $id);
        if ($row->status()->isOpen()) {
            throw new SagaNotEnded("Saga {$row->saga} \"{$id}\" is {$row->status()->value}, only a saga that has ended can be reopened");
        }
        $row->reopen($expires ?? $definition->options->expires);
        $this->store->save($this->store->database, $row);
        if ($definition->options->publishEvents) {
            $this->sender->one(MessageKind::Event, new SagaReopened($row->saga, $row->id));
        }
    }

    /**
     * Deletes sagas that ended or expired some time ago. Messages that come for them afterwards find none.
     *
     * @param float $before seconds ago
     * @return int how many
     */
    public function prune(float $before): int
    {
        $time = (int) ((Clock::now() - $before) * 1000);

        return $this->store->database->transaction(fn(Transaction $transaction): int => $this->store->prune($transaction, $time));
    }

    private function row(string $saga, string $id): SagaRow
    {
        return $this->store->byId($this->store->database, $this->name($saga), $id)
            ?? throw new SagaNotFound("Saga {$this->name($saga)} \"{$id}\" was not started or has been deleted");
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
