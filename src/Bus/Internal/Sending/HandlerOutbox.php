<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Sending;

use Weft\Bus\Context;
use Weft\Bus\Header;
use Weft\Bus\Internal\MessageKind;
use Weft\Bus\BusStats;
use Weft\Bus\SendOptions;
use Weft\Bus\Transport;
use Weft\Bus\Transport\Outgoing;

/**
 * The messages that one handler sends: kept until its transaction commits, or published immediately with {@see \Weft\Bus\DeliveryGuarantee::BestEffort}.
 *
 * @internal
 */
final class HandlerOutbox
{
    /** @var list<Outgoing> */
    private array $kept = [];

    /** @var list<array{Outgoing, float}> with the time each is due */
    private array $delayed = [];

    private bool $isOpen = true;

    /** The reply, sent after the handler's transaction has committed. */
    public ?Outgoing $reply = null;

    /** @param Transport|null $direct where messages go at once; null keeps them */
    public function __construct(
        private readonly EnvelopeFactory $envelopes,
        private readonly BusStats $stats,
        private readonly ?Transport $direct,
        private readonly ?DelayStore $delays,
    ) {}

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
        $due = $options?->due();
        $transaction = $this->direct === null || $due !== null ? $cause->transaction() : null;
        $outgoing = $this->envelopes->wrap($kind, $message, $cause, $options === null ? $headers : $headers + $options->headers($due), $due, $transaction);
        if ($due !== null) {
            $this->delays ?? throw Due::databaseRequired($message);
            $this->delayed[] = [$outgoing, $due];
        } elseif ($this->direct === null) {
            $this->kept[] = $outgoing;
        } else {
            $this->direct->publish([$outgoing], confirmed: false);
            $this->stats->sent++;
        }

        // With the whole transaction everything that was kept is dropped.
        if ($transaction?->isNested()) {
            $transaction->onRollback(fn() => $this->withdraw($outgoing));
        }

        return $outgoing->headers[Header::DELAY_ID] ?? $outgoing->headers[Header::MESSAGE_ID];
    }

    /** @return list<array{Outgoing, float}> messages that are to leave later, and when */
    public function delayed(): array
    {
        return $this->delayed;
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

        return $this->kept;
    }

    /** The savepoint in which it was sent is rolled back. */
    private function withdraw(Outgoing $message): void
    {
        $this->kept = \array_values(\array_filter($this->kept, static fn(Outgoing $kept): bool => $kept !== $message));
        $this->delayed = \array_values(\array_filter($this->delayed, static fn(array $delayed): bool => $delayed[0] !== $message));
    }
}
