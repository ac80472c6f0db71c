<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Persistence;

use Psr\Log\LoggerInterface;
use Weft\Bus\CrashedTooOftenException;
use Weft\Bus\Header;
use Weft\Bus\Internal\Sending\EnvelopeFactory;
use Weft\Bus\Internal\Identifier;
use Weft\Bus\InboxOptions;
use Weft\Bus\Transport;
use Weft\Bus\Transport\Delivery;
use Weft\Bus\Transport\Outgoing;
use Weft\Sql\Database;
use Weft\Sql\Internal\Schema\Migrator;

/**
 * The tables of the bus in the database: inbox, outbox, redeliveries, delayed messages, schedules and blocked keys.
 *
 * @internal
 */
final class Persistence
{
    /** Largest number of rows that is counted: in an outage there may be millions. */
    public const MAX_COUNT = 100_000;

    /** Longest id that is stored unchanged, see {@see Identifier::fit()}. */
    private const ID_BYTES = 64;

    /** @var array<string, int> by queue and handler */
    private array $consumers = [];

    public readonly OutboxRelay $relay;
    public readonly DelayedMessages $delayed;
    public readonly Schedules $schedules;
    public readonly Maintenance $maintenance;
    public readonly BlockedKeys $keys;
    public readonly BrokerLease $broker;
    private readonly string $now;
    private readonly Redeliveries $redeliveries;
    private readonly DeferredDelete $sent;
    private bool $isReady = false;

    public function __construct(
        public readonly Database $database,
        Transport $transport,
        EnvelopeFactory $envelopes,
        public readonly InboxOptions $options,
        LoggerInterface $logger,
    ) {
        $this->broker = new BrokerLease($database, $transport);
        $this->relay = new OutboxRelay($database, $transport, $logger, $options->relayAfter);
        $this->delayed = new DelayedMessages($database, $transport, $logger);
        $this->schedules = new Schedules($database, $this->delayed, $envelopes, $logger);
        $this->maintenance = new Maintenance($database, $this->relay, $this->delayed, $this->schedules, $this->broker, $options, $logger);
        $this->keys = new BlockedKeys($database);
        $this->now = (new Dialect($database))->seconds();
        $this->redeliveries = new Redeliveries($database, $logger);
        $this->sent = new DeferredDelete($database, 'weft_outbox', 'id', $logger);
    }

    /** Creates or upgrades the tables, once. */
    public function prepare(): void
    {
        if (!$this->isReady) {
            (new Migrator($this->database))->ensure(Tables::component());
            $this->isReady = true;
        }
    }

    /** Releases the key that a dead letter blocks. */
    public function releaseKeyOf(Delivery $deadLetter, string $queue): void
    {
        if (isset($deadLetter->headers[Header::ORDER_KEY])) {
            $retry = DelayedMessages::retryId($queue, $deadLetter->headers, $deadLetter->type, $deadLetter->body);
            $this->keys->releaseBlockedBy($queue, self::idOf($deadLetter->headers), $retry);
        }
    }

    /** @return array<string, int> */
    public function backlog(): array
    {
        return [
            'outbox' => (int) $this->database->execute('SELECT count(*) FROM weft_outbox')->value(),
            'delayed' => (int) $this->database->execute('SELECT count(*) FROM weft_delayed')->value(),
        ];
    }

    /** @return array{int, float, int} how many messages are in the outbox, how many seconds the oldest is there, and how many are to leave later */
    public function outboxSizes(): array
    {
        $count = fn(string $table): int => (int) $this->database->execute("SELECT count(*) FROM (SELECT 1 FROM {$table} LIMIT " . self::MAX_COUNT . ') AS counted')->value();
        $outbox = $count('weft_outbox');
        $first = $outbox === 0 ? null : $this->database->execute('SELECT min(id) FROM weft_outbox')->value();
        // Message ids are UUIDs of version 7, which begin with their time in milliseconds.
        $written = $first === null ? null : \hexdec(\substr(\str_replace('-', '', (string) $first), 0, 12)) / 1000;

        return [$outbox, $written === null ? 0.0 : \max(0.0, \microtime(true) - $written), $count('weft_delayed')];
    }

    public function inboxEntry(Delivery $delivery, string $handler, string $queue): InboxEntry
    {
        return new InboxEntry($this->database, $delivery, self::idOf($delivery->headers), $this->consumer("{$queue}\0{$handler}"), $this->now);
    }

    public function inboxBatch(string $handler, string $queue): InboxBatch
    {
        return new InboxBatch($this->database, $this->consumer("{$queue}\0{$handler}"));
    }

    /** @param list<Outgoing> $messages the broker has them: their rows can go, and do so together with others */
    public function sent(array $messages): void
    {
        foreach ($messages as $message) {
            $this->sent->add(self::idOf($message->headers));
        }
    }

    /**
     * Whether messages are still in the outbox.
     *
     * @param list<Outgoing> $messages
     * @throws \Weft\Sql\SqlException|\Weft\Pool\PoolException
     */
    public function holds(array $messages): bool
    {
        $ids = \array_map(static fn(Outgoing $message): string => self::idOf($message->headers), $messages);
        if ($ids === []) {
            return false;
        }
        [$among, $parameters] = (new Dialect($this->database))->among('id', $ids);

        return $this->database->execute("SELECT 1 FROM weft_outbox WHERE {$among} LIMIT 1", $parameters)->value() !== null;
    }

    /** How often a message was redelivered, as far as it was counted. */
    public function redeliveries(Delivery $delivery, string $queue): int
    {
        $id = self::idOf($delivery->headers);

        return $id === '' ? 0 : $this->redeliveries->of($id, $this->consumer($queue));
    }

    /**
     * Counts a redelivery before the message is handled again.
     *
     * @return int number of workers that ended while they handled it
     * @throws CrashedTooOftenException when that is enough
     */
    public function countRedelivery(Delivery $delivery, string $queue): int
    {
        $id = self::idOf($delivery->headers);
        if ($id === '') {
            return 0;
        }
        $crashes = $this->redeliveries->note($id, $this->consumer($queue));
        if ($crashes >= $this->options->maxCrashes) {
            throw new CrashedTooOftenException("Message {$id} of queue \"{$queue}\" was handled {$crashes} times by workers that ended before they acknowledged it");
        }

        return $crashes;
    }

    /** The message was settled: deletes the count of {@see countRedelivery()}. */
    public function clearRedeliveries(Delivery $delivery, string $queue): void
    {
        $id = self::idOf($delivery->headers);
        if ($id !== '') {
            $this->redeliveries->forget($id, $this->consumer($queue));
        }
    }

    /** Waits until pending rows are deleted. */
    public function flush(): void
    {
        $this->sent->flush();
    }

    /** @param array<string, string> $headers */
    public static function idOf(array $headers): string
    {
        return Identifier::fit($headers[Header::MESSAGE_ID] ?? '', self::ID_BYTES);
    }

    /** A hash of 64 bits: short in every inbox row, and the same in every process. */
    private function consumer(string $name): int
    {
        return $this->consumers[$name] ??= \unpack('q', \hash('xxh3', $name, true))[1];
    }
}
