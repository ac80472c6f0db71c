<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Sending;

use Weft\Bus\DelayedMessageCancelled;
use Weft\Bus\Header;
use Weft\Bus\Internal\Clock;
use Weft\Bus\Internal\MessageKind;
use Weft\Bus\Internal\Memory\MemoryDelayStore;
use Weft\Bus\Internal\Persistence\DelayedMessages;
use Weft\Bus\Internal\Setup;
use Weft\Bus\SendOptions;
use Weft\Bus\Transport\Outgoing;
use Weft\Sql\Transaction;

/**
 * Sends and publishes: inside a handler through its outbox, otherwise immediately.
 *
 * @internal
 */
final class Sender
{
    public function __construct(private readonly Setup $setup) {}

    /** @return string the message's id */
    public function one(MessageKind $kind, object $message, ?SendOptions $options = null): string
    {
        $context = $this->setup->handling();
        if ($context !== null) {
            return $context->add($kind, $message, $options);
        }
        $due = $options?->due();
        $outgoing = $this->setup->envelopes->wrap($kind, $message, null, $options?->headers($due) ?? [], $due);
        if ($due === null) {
            $this->setup->transport->publish([$outgoing], $options->confirm ?? true);
        } else {
            $this->setup->persistence?->prepare();
            $delays = $this->setup->delays ?? throw Due::databaseRequired($message);
            $store = static fn() => $delays->store($outgoing, $due);
            $this->setup->persistence === null ? $store() : $this->setup->persistence->broker->during($store);
        }
        $this->setup->stats->sent++;

        return $outgoing->headers[Header::DELAY_ID] ?? $outgoing->headers[Header::MESSAGE_ID];
    }

    /** Publishes an event after the commit of a transaction of the bus's database, of a handler or another one. */
    public function afterCommit(Transaction $transaction, object $event): void
    {
        $context = $this->setup->handling();
        if ($context !== null && $context->transaction() === $transaction) {
            $context->add(MessageKind::Event, $event, null);

            return;
        }
        $delayed = $this->setup->persistence?->delayed ?? throw new \Error('A message in a transaction needs a database: pass one to Bus::connect()');
        $delayed->add($transaction, $this->setup->envelopes->wrap(MessageKind::Event, $event, $context, transaction: $transaction), Clock::now());
        $this->setup->stats->sent++;
    }

    /**
     * @param iterable<object> $messages read as fast as the broker takes
     * @return int how many
     */
    public function many(MessageKind $kind, iterable $messages, ?SendOptions $options): int
    {
        $sent = 0;
        if ($this->setup->handling() !== null || $options?->due() !== null) {
            foreach ($messages as $message) {
                $this->one($kind, $message, $options);
                $sent++;
            }

            return $sent;
        }
        // An expiry counts from the moment when each leaves.
        $headers = $options?->expires === null ? $options?->headers(null) ?? [] : null;
        $wrapped = function () use ($kind, $messages, $options, $headers, &$sent): iterable {
            foreach ($messages as $message) {
                yield $this->setup->envelopes->wrap($kind, $message, null, $headers ?? $options?->headers(null) ?? []);
                $sent++;
                $this->setup->stats->sent++;
            }
        };
        /** @var iterable<Outgoing> $outgoing */
        $outgoing = $wrapped();
        $this->setup->transport->publish($outgoing, $options->confirm ?? true);

        return $sent;
    }

    /** @return float|null when the next may be due, by the clock of {@see Clock} */
    public function releaseDue(): ?float
    {
        $persistence = $this->setup->persistence;
        if ($persistence === null) {
            $delays = $this->setup->delays;
            $delays instanceof MemoryDelayStore && $delays->release();

            return $delays instanceof MemoryDelayStore ? $delays->next() : null;
        }
        $persistence->prepare();
        $this->setup->expired?->end();
        $persistence->schedules->fire();
        if (($persistence->delayed->next() ?? \INF) <= Clock::now()) {
            $persistence->delayed->release();
        }
        $next = \min($persistence->delayed->next() ?? \INF, $persistence->schedules->next() ?? \INF);

        return $next === \INF ? null : $next;
    }

    /** @return bool whether a message of that id was waiting and no longer is */
    public function cancel(string $id, ?string $reason = null): bool
    {
        $delays = $this->setup->delays;
        $handling = $this->setup->handling();
        $transaction = $handling?->transaction();
        if ($handling?->takeBack($id)) {
            $isCancelled = true;
        } elseif ($delays instanceof DelayedMessages && $transaction?->isOpen()) {
            $isCancelled = DelayedMessages::drop($transaction, $id);
        } else {
            $this->setup->persistence?->prepare();
            $isCancelled = $delays?->cancel($id) ?? false;
        }
        if ($isCancelled && $reason !== null) {
            $this->one(MessageKind::Event, new DelayedMessageCancelled($id, \mb_scrub($reason, 'UTF-8')));
        }

        return $isCancelled;
    }
}
