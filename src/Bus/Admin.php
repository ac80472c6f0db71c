<?php

declare(strict_types=1);

namespace Weft\Bus;

use Weft\Bus\Internal\Handlers\Handler;
use Weft\Bus\Internal\MessageKind;
use Weft\Bus\Internal\Schema\Comparison;
use Weft\Bus\Internal\Schema\Schema;
use Weft\Bus\Internal\Sending\Sender;
use Weft\Bus\Internal\Setup;
use Weft\Bus\Saga\Sagas;
use Weft\Sql\Database;
use Weft\Sql\Internal\Schema\Component;

/** Administers a bus: counters, what it stores in its database, and its message classes. Made by {@see Bus::admin()}. */
final class Admin
{
    /** @internal made by {@see Bus::admin()} */
    public function __construct(
        private readonly Setup $setup,
        private readonly Sender $sender,
    ) {}

    /**
     * The registered handlers with the retries, the timeout and the transaction of each.
     *
     * @return list<HandlerInfo> in the order of their registration, those of a message together
     */
    public function handlers(): array
    {
        $options = $this->setup->options;

        return \array_map(static fn(Handler $handler): HandlerInfo => new HandlerInfo(
            $handler->message->type,
            $handler->kind->value,
            $handler->name,
            self::rules($handler, $options->retry),
            $handler->attributes->timeout ?? $options->timeout,
            $handler->transactional,
        ), $this->setup->handlers->all());
    }

    /** A snapshot of the counters of the bus, in this process. */
    public function stats(): BusStats
    {
        return clone $this->setup->stats;
    }

    /** @return array<string, int> messages that wait in the database: in the `outbox`, and `delayed`; empty without a database */
    public function backlog(): array
    {
        $this->setup->persistence?->prepare();

        return $this->setup->persistence?->backlog() ?? [];
    }

    /**
     * Deletes inbox rows older than {@see InboxOptions::$retention} and stored bodies older than {@see ClaimCheck::$retention}. A bus
     * that consumes deletes the inbox rows by itself.
     *
     * @return int number of deleted rows and bodies
     */
    public function prune(): int
    {
        $this->setup->persistence?->prepare();

        return ($this->setup->persistence?->maintenance->prune() ?? 0) + $this->setup->claims->prune();
    }

    /**
     * Publishes everything in the outbox immediately. A bus that consumes does so by itself, {@see InboxOptions::$relayAfter} seconds
     * after the commit.
     *
     * @return int number of published messages; they may be published twice, with the same ids
     *
     * @throws BrokerConflictException when the outbox is that of a bus on another broker
     */
    public function flushOutbox(): int
    {
        $persistence = $this->setup->persistence;
        if ($persistence === null) {
            return 0;
        }
        $persistence->prepare();

        return $persistence->broker->during($persistence->relay->all(...));
    }

    /**
     * Finds, reopens and deletes sagas.
     *
     * @throws \Error without a database
     */
    public function sagas(): Sagas
    {
        $this->setup->sagas->prepare(always: true);
        $this->setup->persistence?->prepare();

        return new Sagas(
            $this->setup->sagas->store ?? throw new \Error('Sagas need a database: pass one to Bus::connect()'),
            $this->setup->sagas->definitions,
            $this->sender,
        );
    }

    /**
     * Compares the message classes of the handlers and of {@see MessageOptions::$classes} with a lock file, as `weft schema:check` does.
     *
     * @param string|null $lock contents of the file; null for no comparison
     *
     * @throws \ValueError when the contents are not a lock file
     */
    public function compareSchema(?string $lock): SchemaChange
    {
        $now = Schema::of($this->setup->codec, $this->setup->decoder->upcasters);
        $comparison = new Comparison($lock === null ? $now : Schema::parse($lock), $now);

        return new SchemaChange($comparison->breaking, $comparison->compatible, $now->json());
    }

    /**
     * @internal for `weft setup`
     *
     * @return list<array{Database, Component}> the tables that the bus uses, and where
     */
    public function components(): array
    {
        return $this->setup->components();
    }

    /**
     * Publishes delayed messages that are due, as a consuming bus does by itself.
     *
     * @internal for {@see \Weft\Testing\TestBus}
     *
     * @return float|null when the next message may be due, by the bus's clock; null when none is waiting
     */
    public function releaseDue(): ?float
    {
        return $this->sender->releaseDue();
    }

    /** @return list<Retry> */
    private static function rules(Handler $handler, Retry $default): array
    {
        $rules = $handler->attributes->retries;
        foreach ($rules as $index => $rule) {
            if ($rule->on === []) {
                return \array_slice($rules, 0, $index + 1);
            }
        }

        return [...$rules, $handler->kind === MessageKind::Query ? new Retry(immediate: $default->immediate, on: [Recoverable::class]) : $default];
    }
}
