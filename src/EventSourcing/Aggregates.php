<?php

declare(strict_types=1);

namespace Weft\EventSourcing;

use Weft\Bus\Context;
use Weft\Bus\MessageDecodingException;
use Weft\EventSourcing\Internal\AggregateClass;
use Weft\EventSourcing\Internal\History;
use Weft\Sql\Transaction;

/**
 * A repository for the aggregates of one class.
 *
 * @template T of object
 */
final class Aggregates
{
    private readonly AggregateClass $class;

    /**
     * @param class-string<T> $class marked with {@see AggregateRoot}
     *
     * @throws InvalidAggregateError
     * @throws \Weft\Bus\InvalidMessageClassError when one of its events, or with snapshots one of its properties, cannot be stored
     */
    public function __construct(private readonly EventStore $store, string $class)
    {
        $this->class = AggregateClass::of($class);
        $store->registerEvents(...$this->class->events());
    }

    /**
     * @return T
     *
     * @throws AggregateNotFoundException
     * @throws UnknownEventException
     * @throws InvalidEventException
     */
    public function load(Transaction $transaction, string $id): object
    {
        return $this->find($transaction, $id) ?? throw new AggregateNotFoundException("No event of {$this->class->class} \"{$id}\" is recorded");
    }

    /** @return T|null */
    public function find(Transaction $transaction, string $id): ?object
    {
        $stream = $this->class->stream($id);
        [$snapshot, $rows] = $this->store->storage()->load($transaction, $stream, $this->class->state === null ? 0 : $this->class->state->version);
        if ($snapshot === null && $rows === []) {
            return null;
        }
        $living = self::living(\array_map($this->store->events()->read(...), $rows));
        if ($snapshot === null && $living === [] && self::isErased($rows)) {
            return null;
        }
        /** @var T $aggregate */
        $aggregate = $snapshot === null ? $this->class->blank() : $this->restore($stream, $snapshot);
        foreach ($living as $recorded) {
            $this->class->apply($aggregate, $recorded->event);
            History::of($aggregate)->isClosed = $recorded->event instanceof AggregateClosed;
        }
        if ($rows !== []) {
            History::of($aggregate)->version = $rows[\count($rows) - 1]['version'];
        }

        return $aggregate;
    }

    /**
     * Appends the events that an aggregate has recorded since it was loaded or saved. If the transaction, or a savepoint around the call, is
     * rolled back, the next call appends them.
     *
     * @param T            $aggregate
     * @param Context|null $context publishes the events if the transaction of its handler commits
     *
     * @throws StreamConflictException when the aggregate was saved concurrently; the transaction cannot be used any more
     */
    public function save(Transaction $transaction, object $aggregate, ?Context $context = null): void
    {
        if ($aggregate::class !== $this->class->class) {
            throw new \ValueError("Expected an aggregate of class {$this->class->class}, got " . $aggregate::class);
        }
        $history = History::of($aggregate);
        if ($history->recorded === []) {
            return;
        }
        $stream = $this->class->streamOf($aggregate);
        $before = $history->version;
        $version = $this->store->append($transaction, $stream, $before, $history->recorded, $context);
        $every = $this->class->options->snapshotEvery;
        // A snapshot has no history: that of a closed aggregate must show that it is closed.
        if ($this->class->state !== null && !$history->isClosed && \intdiv($version, (int) $every) > \intdiv($before, (int) $every)) {
            $this->store->storage()->snapshot($transaction, $stream, $version, $this->class->state->version, $this->class->state->encode($aggregate));
        }
        $history->saved($transaction, $version);
    }

    /**
     * Reverts an aggregate to an earlier version. Nothing is deleted: a {@see StreamReverted} event is appended, which readers of all events
     * receive, too.
     *
     * @param int          $version of its stream, at least 1
     * @param Context|null $context publishes the event
     *
     * @throws AggregateNotFoundException
     * @throws StreamConflictException when the aggregate was saved concurrently; the transaction cannot be used any more
     */
    public function revert(Transaction $transaction, string $id, int $version, ?Context $context = null): void
    {
        $history = History::of($this->load($transaction, $id));
        // Without its first event it would have no id.
        if ($version < 1 || $version > $history->version) {
            throw new \ValueError("{$this->class->class} \"{$id}\" is at version {$history->version} and can be reverted to version 1 and above, not to {$version}");
        }
        $stream = $this->class->stream($id);
        $this->store->append($transaction, $stream, $history->version, [new StreamReverted($stream, $version)], $context);
        $this->store->storage()->forgetSnapshot($transaction, $stream);
    }

    /** Whether an aggregate records no more events, see {@see RecordsEvents::close()}. */
    public function isClosed(object $aggregate): bool
    {
        return History::of($aggregate)->isClosed;
    }

    /** @param list<array<string, mixed>> $rows */
    private static function isErased(array $rows): bool
    {
        return \in_array(EventErased::TYPE, \array_column($rows, 'type'), true);
    }

    /**
     * @param list<RecordedEvent> $events
     * @return list<RecordedEvent> those that were neither reverted nor erased
     */
    private static function living(array $events): array
    {
        // Each event points to the living one before it, and each version to its last living one: to revert is to go on from there.
        $before = $last = [];
        $end = null;
        foreach ($events as $index => $recorded) {
            if ($recorded->event instanceof StreamReverted) {
                $end = $last[$recorded->event->to] ?? null;
            } elseif ($recorded->event instanceof StreamErased) {
                $end = null;
            } elseif (!$recorded->event instanceof EventErased) {
                $before[$index] = $end;
                $end = $index;
            }
            $last[$recorded->version] = $end;
        }
        $living = [];
        for (; $end !== null; $end = $before[$end]) {
            $living[] = $events[$end];
        }

        return \array_reverse($living);
    }

    /** @param array<string, mixed> $snapshot */
    private function restore(string $stream, array $snapshot): object
    {
        \assert($this->class->state !== null);
        try {
            $aggregate = $this->class->state->decode($snapshot['body']);
        } catch (MessageDecodingException $failed) {
            throw new InvalidEventException("The snapshot of stream \"{$stream}\" does not match {$this->class->class}; increase the version of its #[AggregateRoot]: {$failed->getMessage()}", $failed);
        }
        History::of($aggregate)->version = $snapshot['version'];

        return $aggregate;
    }
}
