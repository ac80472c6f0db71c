<?php

declare(strict_types=1);

namespace Weft\EventSourcing;

use Weft\Bus\Context;
use Weft\Bus\Header;
use Weft\Bus\Internal\Clock;
use Weft\Bus\Internal\Codec\Codec;
use Weft\Bus\Internal\Identifier;
use Weft\Bus\InvalidUpcasterException;
use Weft\EventSourcing\Internal\Events;
use Weft\EventSourcing\Internal\Storage;
use Weft\Sql\Connection;
use Weft\Sql\Database;
use Weft\Sql\Transaction;
use Weft\Sql\UniqueViolationException;

use function Weft\delay;

/**
 * Streams of events in a database. Each stream has versions from 1, and all events have one order that readers can follow without
 * missing any.
 *
 * Events are encoded like messages of the bus, see {@see \Weft\Bus\MessageType}. The tables `weft_events`, `weft_snapshots`,
 * `weft_unique_values` and `weft_projections` are created and upgraded on first use, in SQLite by the constructor, see
 * {@see Database::connect()}.
 */
final class EventStore
{
    private readonly Events $events;
    private readonly Storage $storage;

    /** @param class-string ...$events classes to read; those that an aggregate applies are registered automatically */
    public function __construct(Database $database, string ...$events)
    {
        $this->events = new Events();
        $this->storage = new Storage($database);
        $this->registerEvents(StreamReverted::class, EventErased::class, StreamErased::class, AggregateClosed::class, ...$events);
    }

    /**
     * Registers event classes, so that they can be read.
     *
     * @param class-string ...$events
     * @throws \Weft\Bus\InvalidMessageClassError
     */
    public function registerEvents(string ...$events): static
    {
        foreach ($events as $event) {
            $this->events->codec->of($event);
        }

        return $this;
    }

    /**
     * Registers every method of the objects that is marked with {@see \Weft\Bus\Upcaster}. It converts events of an older version of a class
     * when they are read.
     *
     * @throws \Weft\Bus\InvalidUpcasterException
     */
    public function upcasters(object ...$services): static
    {
        foreach ($services as $service) {
            $upcasters = $this->events->upcasters->compile($service);
            $upcasters !== [] || throw new InvalidUpcasterException(\get_debug_type($service) . ' has no method marked with #[Upcaster]');
            $this->events->upcasters->add($upcasters);
        }

        return $this;
    }

    /**
     * Appends to a stream as part of a transaction.
     *
     * @param string       $stream   1 to 200 bytes of UTF-8 without NUL
     * @param int          $expected the current version of the stream, which is that of its last event; 0 for a new stream
     * @param list<object> $events
     * @param Context|null $context  publishes the events if the transaction of its handler commits
     * @return int the new version of the stream
     *
     * @throws StreamConflictException when the stream has another version; the transaction cannot be used any more
     */
    public function append(Transaction $transaction, string $stream, int $expected, array $events, ?Context $context = null): int
    {
        self::checkStream($stream);
        if ($expected < 0) {
            throw new \ValueError("The version of a stream must be at least 0, got {$expected}");
        }
        if ($events === []) {
            return $expected;
        }
        $this->storage->prepare();
        $headers = \json_encode((object) self::headers($context), \JSON_THROW_ON_ERROR | \JSON_UNESCAPED_SLASHES | \JSON_INVALID_UTF8_SUBSTITUTE);
        $rows = [];
        foreach ($events as $event) {
            $class = $this->events->codec->of($event::class);
            $rows[] = [$class->type, $class->version, $headers, $class->encode($event)];
        }
        try {
            $this->storage->append($transaction, $stream, $expected, $rows, (int) (Clock::now() * 1000)) || throw new StreamConflictException("Stream \"{$stream}\" has no version {$expected}: nothing can follow it");
        } catch (UniqueViolationException $taken) {
            throw new StreamConflictException("Stream \"{$stream}\" has newer events than version {$expected}", $taken);
        }
        foreach ($events as $event) {
            $context?->publish($event);
        }

        return $expected + \count($events);
    }

    /**
     * Erases the contents of a stream for good, for privacy. Its events keep their versions and positions, so that readers go on; each becomes
     * an {@see EventErased}, which names only the type. A {@see StreamErased} is appended, so that projections delete what they have taken
     * from the stream. Snapshots are deleted.
     *
     * An aggregate whose stream is erased is not found, and its id cannot be used again. Backups, messages that were published before and
     * values of a {@see UniqueIndex} are not affected.
     *
     * @param string       $reason  stays in the store; 0 to 1,000 bytes
     * @param Context|null $context publishes {@see StreamErased} if the transaction of its handler commits
     * @return int number of erased events; 0 for an unknown stream and for one that is erased already, to which nothing is appended
     *
     * @throws StreamConflictException when the stream was appended to concurrently; the transaction cannot be used any more
     */
    public function erase(Transaction $transaction, string $stream, string $reason = '', ?Context $context = null): int
    {
        if (\strlen($reason) > 1_000) {
            throw new \ValueError('The reason for erasing a stream must have at most 1,000 bytes, got ' . \strlen($reason));
        }
        self::checkStream($stream);
        $this->storage->prepare();
        $erased = $this->codec()->of(EventErased::class);
        $stay = [$erased->type, $this->codec()->of(StreamErased::class)->type];
        $rows = $this->storage->stream($transaction, $stream, 0);
        $left = \array_filter($rows, static fn(array $row): bool => !\in_array($row['type'], $stay, true));
        if ($left === []) {
            return 0;
        }
        // First: in MariaDB an append locks the counter and then reads the last event, and would wait for this transaction while it waits for the counter.
        $this->append($transaction, $stream, $rows[\count($rows) - 1]['version'], [new StreamErased($stream, \mb_scrub($reason, 'UTF-8'))], $context);
        foreach ($left as $row) {
            $this->storage->replace($transaction, $stream, $row['version'], $erased->type, $erased->version, $erased->encode(new EventErased($row['type'])));
        }
        $this->storage->forgetSnapshot($transaction, $stream);

        return \count($left);
    }

    /**
     * @param int $after only events with a later version
     * @return list<RecordedEvent> by version; empty for an unknown stream
     *
     * @throws UnknownEventException
     * @throws InvalidEventException
     */
    public function stream(string $stream, int $after = 0, ?Connection $connection = null): array
    {
        self::checkStream($stream);
        $this->storage->prepare();

        return \array_map($this->events->read(...), $this->storage->stream($connection ?? $this->storage->database, $stream, $after));
    }

    /**
     * The next events of all streams. Events of one stream are in the order of their versions. No event with a smaller position can appear
     * after an event was returned, so a returned position is a safe `$after`.
     *
     * On PostgreSQL an event is returned only when concurrent transactions, which may still commit events with smaller positions, have
     * ended.
     *
     * @param int         $after a position; 0 for the beginning
     * @param int<1, max> $limit
     * @return list<RecordedEvent> by position
     *
     * @throws UnknownEventException
     * @throws InvalidEventException
     */
    public function read(int $after = 0, int $limit = 500): array
    {
        if ($limit < 1) {
            throw new \ValueError("The limit must be at least 1, got {$limit}");
        }
        $this->storage->prepare();

        return \array_map($this->events->read(...), $this->storage->read($after, $limit));
    }

    /**
     * Updates a projection: calls `$apply` with each event that the projection has not processed, in order and exactly once. The position
     * of the projection commits together with its changes, so that neither a crash nor a concurrent process repeats or skips an event.
     *
     * @param string                                       $projection 1 to 200 bytes of UTF-8 without NUL; must never change
     * @param \Closure(RecordedEvent, Transaction): mixed $apply
     * @param int<1, max>                                  $batch      events per transaction
     * @return int number of events processed by this call
     *
     * @throws \Throwable an exception of `$apply`; its batch is rolled back
     */
    public function catchUp(string $projection, \Closure $apply, int $batch = 500): int
    {
        self::checkProjection($projection);
        $total = 0;
        $this->storage->prepare();
        while (($events = $this->read($from = $this->storage->reached($projection), $batch)) !== []) {
            $total += $this->storage->database->transaction(function (Transaction $transaction) use ($projection, $apply, $events, $from): int {
                // First, so that a concurrent process waits here and then finds nothing to do.
                if (!$this->storage->move($transaction, $projection, $from, $events[\count($events) - 1]->position)) {
                    return 0;
                }
                foreach ($events as $event) {
                    $apply($event, $transaction);
                }

                return \count($events);
            });
        }

        return $total;
    }

    /**
     * Keeps a projection up to date until it is cancelled.
     *
     * @param \Closure(RecordedEvent, Transaction): mixed $apply
     * @param float                                        $interval seconds between two reads
     */
    public function follow(string $projection, \Closure $apply, float $interval = 0.2): never
    {
        while (true) {
            $this->catchUp($projection, $apply);
            delay($interval);
        }
    }

    /** Resets the position of a projection to the beginning. The caller must delete the projected data. */
    public function reset(string $projection): void
    {
        self::checkProjection($projection);
        $this->storage->prepare();
        $this->storage->reset($projection);
    }

    /** @internal */
    public function storage(): Storage
    {
        $this->storage->prepare();

        return $this->storage;
    }

    /** @internal */
    public function events(): Events
    {
        return $this->events;
    }

    private static function checkStream(string $stream): void
    {
        Identifier::check('The name of a stream', $stream, 200);
    }

    private static function checkProjection(string $projection): void
    {
        Identifier::check('The name of a projection', $projection, 200);
    }

    private function codec(): Codec
    {
        return $this->events->codec;
    }

    /** @return array<string, string> */
    private static function headers(?Context $context): array
    {
        return $context === null ? [] : [
            Header::CORRELATION_ID => $context->correlationId(),
            Header::CAUSATION_ID => $context->messageId(),
            Header::TRACEPARENT => $context->trace()->traceparent,
        ];
    }
}
