<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Sending;

use Weft\Bus\AlreadyScheduledException;
use Weft\Bus\Context;
use Weft\Bus\Header;
use Weft\Bus\Internal\MessageKind;
use Weft\Bus\BusStats;
use Weft\Bus\SendOptions;
use Weft\Bus\Transport;
use Weft\Bus\Transport\Outgoing;
use Weft\Sql\Transaction;

/**
 * The messages that one handler sends: kept until its transaction commits, or published immediately with {@see \Weft\Bus\DeliveryGuarantee::BestEffort}.
 *
 * @internal
 */
final class HandlerOutbox
{
    /** @var array<int, Outgoing> by their number */
    private array $kept = [];

    /** @var array<int, array{Outgoing, float}> by their number, with the time each is due */
    private array $delayed = [];

    private int $next = 0;

    private bool $isOpen = true;

    /** @var list<self> those of the items of a batch, of which this one is that of the call */
    private array $items = [];

    /** The reply, sent after the handler's transaction has committed. */
    public ?Outgoing $reply = null;

    /**
     * @param Transport|null $direct where messages go at once; null keeps them
     * @param self|null      $call   of an item of a batch: that of the call
     */
    public function __construct(
        private readonly EnvelopeFactory $envelopes,
        private readonly BusStats $stats,
        private readonly ?Transport $direct,
        private readonly ?DelayStore $delays,
        private readonly ?self $call = null,
    ) {
        if ($call !== null) {
            $call->items[] = $this;
        }
    }

    /**
     * @param array<string, string> $headers beside those of the options
     * @return string the message's id
     */
    public function add(MessageKind $kind, object $message, Context $cause, ?SendOptions $options = null, array $headers = []): string
    {
        if (!$this->isOpen) {
            throw new \Error('The handler of this Context has returned and cannot send ' . $message::class
                . '; tasks that it starts must finish before it returns');
        }
        $number = $this->next++;
        $due = $options?->due();
        $transaction = $this->direct === null || $due !== null ? $cause->transaction() : null;
        $outgoing = $this->envelopes->wrap($kind, $message, $cause, $options === null ? $headers : $headers + $options->headers($due), $due, $transaction);
        if ($due !== null) {
            ($this->delays ?? throw Due::databaseRequired($message))->check($outgoing, $due, $transaction?->isOpen() ? $transaction : null);
            $this->refuseSecond($outgoing);
            $this->delayed[$number] = [$outgoing, $due];
        } elseif ($this->direct === null) {
            $this->kept[$number] = $outgoing;
        } else {
            $this->direct->publish([$outgoing], confirmed: false);
            $this->stats->sent++;
        }

        // With the whole transaction everything that was kept is dropped.
        if ($transaction?->isNested()) {
            $transaction->onRollback(function () use ($number): void {
                unset($this->kept[$number], $this->delayed[$number]);
            });
        }

        return self::delayId($outgoing);
    }

    /** @return list<array{Outgoing, float}> messages that are to leave later, and when */
    public function delayed(): array
    {
        return $this->delayed === [] ? [] : \array_values($this->delayed);
    }

    /** Takes back a message that is to leave later, which no store has before the handler is done. A savepoint that is rolled back undoes that. */
    public function cancel(string $id, ?Transaction $transaction): bool
    {
        foreach ($this->handling() as $outbox) {
            foreach ($outbox->delayed as $number => $entry) {
                if (self::delayId($entry[0]) === $id) {
                    unset($outbox->delayed[$number]);
                    if ($transaction?->isNested()) {
                        $transaction->onRollback(static function () use ($outbox, $number, $entry): void {
                            $outbox->delayed[$number] = $entry;
                        });
                    }

                    return true;
                }
            }
        }

        return false;
    }

    /** Whether anything was sent. */
    public function isUsed(): bool
    {
        return $this->kept !== [] || $this->delayed !== [];
    }

    public function isOpen(): bool
    {
        return $this->isOpen;
    }

    /** @return list<Outgoing> what was kept; from now on the handler is over and nothing more is taken */
    public function close(): array
    {
        $this->isOpen = false;
        // Each knows the other; nothing is left to find.
        $this->items = [];

        return $this->kept === [] ? [] : \array_values($this->kept);
    }

    /** @throws AlreadyScheduledException when the handling has sent a message with the id of this one */
    private function refuseSecond(Outgoing $message): void
    {
        if (!isset($message->headers[Header::DELAY_ID])) {
            return;
        }
        foreach ($this->handling() as $outbox) {
            foreach ($outbox->delayed as [$earlier]) {
                self::delayId($earlier) === $message->headers[Header::DELAY_ID] && throw AlreadyScheduledException::of($message->headers[Header::DELAY_ID]);
            }
        }
    }

    /** @return list<self> all that belong to one call of a handler */
    private function handling(): array
    {
        $call = $this->call ?? $this;

        return [$call, ...$call->items];
    }

    private static function delayId(Outgoing $message): string
    {
        return $message->headers[Header::DELAY_ID] ?? $message->headers[Header::MESSAGE_ID];
    }
}
