<?php

declare(strict_types=1);

namespace Weft\EventSourcing;

use Weft\Bus\Context;
use Weft\Bus\Header;
use Weft\Bus\Internal\Clock;
use Weft\EventSourcing\Internal\Events;
use Weft\EventSourcing\Internal\Storage;
use Weft\Sql\Connection;
use Weft\Sql\Database;
use Weft\Sql\Transaction;
use Weft\Sql\UniqueViolation;

use function Weft\delay;

/**
 * Streams of events in a database, each with versions from 1 on, and all events in one order that readers can follow without
 * missing any.
 *
 * Events are coded as messages of the bus are, under the name and version that {@see \Weft\Bus\MessageType} says. The tables
 * `weft_events`, `weft_snapshots`, `weft_unique_values` and `weft_projections` are made where they are missing.
 */
final class EventStore
{
    private readonly Events $events;
    private readonly Storage $storage;

    /** @param class-string ...$events that are read; those an aggregate applies are known without */
    public function __construct(Database $database, string ...$events)
    {
        $this->events = new Events();
        $this->storage = new Storage($database);
        $this->know(StreamReverted::class, ...$events);
    }

    /**
     * Makes event classes known, so that they can be read.
     *
     * @param class-string ...$events
     * @throws \Weft\Bus\InvalidMessageClass
     */
    public function know(string ...$events): static
    {
        foreach ($events as $event) {
            $this->events->codec->of($event);
        }

        return $this;
    }

    /**
     * Registers every method marked with {@see \Weft\Bus\Upcaster} of the objects: how an event that was stored under an older version of
     * its class becomes one of the next version, when it is read.
     *
     * @throws \Weft\Bus\InvalidUpcaster
     */
    public function upcasters(object ...$services): static
    {
        \array_walk($services, $this->events->upcasters->add(...));

        return $this;
    }

    /**
     * Appends to a stream as part of a transaction.
     *
     * @param string       $stream   1 to 200 bytes
     * @param int          $expected the stream's version: that of its last event, 0 for a stream that is to begin
     * @param list<object> $events
     * @param Context|null $context  publishes them: they leave if and only if the transaction of its handler commits
     * @return int the stream's version now
     *
     * @throws StreamConflict when the stream has another version; the transaction cannot be used any more
     */
    public function append(Transaction $transaction, string $stream, int $expected, array $events, ?Context $context = null): int
    {
        if ($stream === '' || \strlen($stream) > 200 || $expected < 0) {
            throw new \ValueError("A stream must have a name of 1 to 200 bytes and a version of at least 0, got \"{$stream}\" and {$expected}");
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
            $this->storage->append($transaction, $stream, $expected, $rows, (int) (Clock::now() * 1000));
        } catch (UniqueViolation $taken) {
            throw new StreamConflict("Stream \"{$stream}\" has newer events than version {$expected}", $taken);
        }
        foreach ($events as $event) {
            $context?->publish($event);
        }

        return $expected + \count($events);
    }

    /**
     * @param int $after a version; only what came later
     * @return list<RecordedEvent> by version; empty where there is no such stream
     *
     * @throws UnknownEvent
     * @throws EventInvalid
     */
    public function stream(string $stream, int $after = 0, ?Connection $connection = null): array
    {
        $this->storage->prepare();

        return \array_map($this->events->read(...), $this->storage->stream($connection ?? $this->storage->database, $stream, $after));
    }

    /**
     * The next events of all streams. Those of one stream come by version; an event that is returned has none before it that could
     * still appear. So `$after` may be a position that was returned before, and nothing is missed.
     *
     * In PostgreSQL an event waits here until transactions that were running beside its own have ended, where one of them may be about to
     * commit events with smaller positions.
     *
     * @param int         $after a position; 0 for the beginning
     * @param int<1, max> $limit
     * @return list<RecordedEvent> by position
     *
     * @throws UnknownEvent
     * @throws EventInvalid
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
     * Brings a projection up to date: gives it every event it has not had, in order, each once. How far it is commits together with what
     * it does in the transaction, so neither a crash nor a second process repeats or skips one.
     *
     * @param string                                       $projection 1 to 200 bytes, its name for ever
     * @param \Closure(RecordedEvent, Transaction): mixed $apply
     * @param int<1, max>                                  $batch      events in one transaction
     * @return int how many it was given by this call
     *
     * @throws \Throwable what `$apply` throws; its batch has no effect
     */
    public function catchUp(string $projection, \Closure $apply, int $batch = 500): int
    {
        if ($projection === '' || \strlen($projection) > 200) {
            throw new \ValueError("The name of a projection must have 1 to 200 bytes, got \"{$projection}\"");
        }
        $total = 0;
        $this->storage->prepare();
        while (($events = $this->read($from = $this->storage->reached($projection), $batch)) !== []) {
            $total += $this->storage->database->transaction(function (Transaction $transaction) use ($projection, $apply, $events, $from): int {
                // First, so that of two processes the second waits here, and then has nothing to do.
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
     * @param float                                        $interval seconds between two looks
     */
    public function follow(string $projection, \Closure $apply, float $interval = 0.2): never
    {
        while (true) {
            $this->catchUp($projection, $apply);
            delay($interval);
        }
    }

    /** Lets a projection begin again; what it has made has to be deleted by whoever made it. */
    public function reset(string $projection): void
    {
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

    /** @return array<string, string> */
    private static function headers(?Context $context): array
    {
        return $context === null ? [] : [
            Header::CORRELATION_ID => $context->correlationId(),
            Header::CAUSATION_ID => $context->messageId(),
            Header::TRACEPARENT => $context->traceparent(),
        ];
    }
}
