<?php

declare(strict_types=1);

namespace Weft\Bus\Saga;

use Weft\Bus\Context;
use Weft\Bus\Header;
use Weft\Bus\Internal\Clock;
use Weft\Bus\Internal\MessageKind;
use Weft\Bus\Internal\Persistence\DelayedMessages;
use Weft\Bus\Internal\Saga\Correlation;
use Weft\Bus\Internal\Saga\SagaDefinition;
use Weft\Bus\Internal\Saga\SagaRow;
use Weft\Bus\Internal\Saga\SagaStore;
use Weft\Bus\SendOptions;
use Weft\Sql\Transaction;

/**
 * The saga that handles a message: its id and times, what it sends, its end. Everything takes effect when the transaction of the
 * method commits.
 */
final class SagaContext
{
    private bool $hasActed = false;

    /** @internal */
    public function __construct(
        private readonly Context $context,
        private readonly Transaction $transaction,
        private readonly SagaStore $store,
        private readonly SagaRow $row,
        private readonly SagaDefinition $definition,
    ) {}

    public function id(): string
    {
        return $this->row->id;
    }

    public function startedAt(): \DateTimeImmutable
    {
        return SagaRow::time($this->row->startedAt);
    }

    /** When the saga expires; null for never. */
    public function expiresAt(): ?\DateTimeImmutable
    {
        return $this->row->expiresAt === null ? null : SagaRow::time($this->row->expiresAt);
    }

    /** Sets another time of expiry than {@see Saga::$expires}; null for never. */
    public function expireAt(?\DateTimeInterface $at): void
    {
        $this->row->expiresAt = $at === null ? null : Clock::milliseconds((float) $at->format('U')) + (int) $at->format('v');
    }

    /** Whether {@see complete()} or {@see fail()} was called. */
    public function hasEnded(): bool
    {
        return $this->row->endedAt !== null;
    }

    /**
     * Sends a command, see {@see Context::send()}.
     *
     * @return string the message id
     */
    public function send(object $command, ?SendOptions $options = null): string
    {
        return $this->context->send($command, $options);
    }

    /**
     * Publishes an event, see {@see Context::publish()}.
     *
     * @return string the message id
     */
    public function publish(object $event, ?SendOptions $options = null): string
    {
        return $this->context->publish($event, $options);
    }

    /**
     * Schedules a message to the saga itself, for its method marked with {@see SagaTimeout}. It survives a restart and has no effect once
     * the saga has ended.
     *
     * @param SendOptions $options with a delay or a time
     * @return string the message id, for {@see cancel()}
     */
    public function timeout(object $message, SendOptions $options): string
    {
        return $this->context->add(MessageKind::Command, $message, $options, [Header::SAGA_ID => $this->row->id]);
    }

    /**
     * Cancels a timeout or another delayed message, as part of the transaction.
     *
     * @return bool false when no message with this id is waiting
     */
    public function cancel(string $id): bool
    {
        $this->hasActed = true;

        return $this->context->takeBack($id) || DelayedMessages::drop($this->transaction, $id);
    }

    /** Ends the saga successfully. Its row stays, so that late messages are recognised. */
    public function complete(string $reason = ''): void
    {
        $this->end(SagaStatus::Completed, $reason);
    }

    /** Ends the saga as failed. */
    public function fail(string $reason = ''): void
    {
        $this->end(SagaStatus::Failed, $reason);
    }

    /**
     * Lets messages find the saga by another value than its id: listeners with `by: $name` or `header: $name`. A saga may have any number of
     * values; a value belongs to one open saga of a class.
     *
     * @param string                            $name  of the property or header, 1 to 100 bytes; not one that identifies the saga, with which
     *                                                 {@see Saga} or {@see SagaStart} is marked
     * @param string|int|\Stringable|\BackedEnum $value 1 to 200 bytes
     *
     * @throws SagaValueTakenException
     */
    public function associate(string $name, string|int|\Stringable|\BackedEnum $value): void
    {
        if ($this->definition->identifies($name)) {
            throw new \ValueError("Values of {$name} are ids of saga {$this->row->saga} and cannot be associated with another one; associate a value of another property or header");
        }
        $this->hasActed = true;
        $this->store->associate($this->transaction, $this->row, self::name($name), self::text($value));
    }

    /** Removes a value that was added with {@see associate()}; does nothing without one. */
    public function dissociate(string $name, string|int|\Stringable|\BackedEnum $value): void
    {
        $this->hasActed = true;
        $this->store->dissociate($this->transaction, $this->row, self::name($name), self::text($value));
    }

    /** @internal */
    public function context(): Context
    {
        return $this->context;
    }

    /** @internal */
    public function transaction(): Transaction
    {
        return $this->transaction;
    }

    /** @internal whether anything depends on the state that was read */
    public function hasActed(): bool
    {
        return $this->hasActed || $this->context->hasSent();
    }

    private function end(SagaStatus $status, string $reason): void
    {
        if ($this->row->endedAt !== null) {
            throw new \Error("Saga {$this->row->saga} \"{$this->row->id}\" has already {$this->row->status->value}");
        }
        $this->row->end($status, \mb_scrub($reason, 'UTF-8'));
    }

    private static function name(string $name): string
    {
        return $name !== '' && \strlen($name) <= 100 ? $name : throw new \ValueError("The name of an associated value must have 1 to 100 bytes, got \"{$name}\"");
    }

    private static function text(mixed $value): string
    {
        return Correlation::text($value) ?? throw new \ValueError('An associated value must have 1 to ' . Correlation::MAX_BYTES . ' bytes of UTF-8');
    }
}
