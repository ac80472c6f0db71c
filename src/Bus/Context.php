<?php

declare(strict_types=1);

namespace Weft\Bus;

use Psr\Log\LoggerInterface;
use Weft\Bus\Internal\MessageKind;
use Weft\Bus\Internal\MessageLogger;
use Weft\Bus\Internal\Sending\HandlerOutbox;
use Weft\Bus\Transport\Delivery;
use Weft\Runtime\Internal\TraceSource;
use Weft\Runtime\Trace;
use Weft\Sql\Transaction;
use Weft\Validation\Validate;
use Weft\Validation\Violation;

use function Weft\Native\conversationTraceparent;

/** The message that a handler processes, and the means to send others. Valid until the handler returns. */
final class Context implements TraceSource
{
    private ?Trace $trace = null;
    private ?MessageLogger $messageLogger = null;
    private ?Transaction $transaction = null;

    /** @var list<Violation> */
    private array $violations = [];

    /** @internal made by the bus for each handled message */
    public function __construct(
        private readonly Delivery $delivery,
        private readonly HandlerOutbox $outbox,
        private readonly LoggerInterface $logger,
        public readonly string $queue,
        private readonly string $handler = '',
        private readonly string $class = '',
    ) {}

    /**
     * Publishes an event to all of its listeners; there may be none.
     *
     * The event is encoded now and published after the handler has returned and its transaction has committed, see
     * {@see DeliveryGuarantee}. What is sent in a nested transaction that is rolled back is not published.
     *
     * @return string the message id, for {@see Bus::cancel()}
     *
     * @throws MessageEncodingException
     * @throws InvalidMessageClassError
     */
    public function publish(object $event, ?SendOptions $options = null): string
    {
        return $this->outbox->add(MessageKind::Event, $event, $this, $options);
    }

    /**
     * Sends a command to its handler, at the same time as {@see publish()}.
     *
     * @return string the message id, for {@see Bus::cancel()}
     *
     * @throws MessageEncodingException
     * @throws InvalidMessageClassError
     */
    public function send(object $command, ?SendOptions $options = null): string
    {
        return $this->outbox->add(MessageKind::Command, $command, $this, $options);
    }

    /**
     * @internal
     *
     * @param array<string, string> $headers beside those of the options
     */
    public function add(MessageKind $kind, object $message, ?SendOptions $options, array $headers = []): string
    {
        return $this->outbox->add($kind, $message, $this, $options, $headers);
    }

    /** @internal whether the handler has sent a delayed message with this id, which is then not stored */
    public function takeBack(string $id): bool
    {
        return $this->outbox->cancel($id, $this->transaction());
    }

    /** @internal whether the handler has sent anything by now */
    public function hasSent(): bool
    {
        return $this->outbox->isUsed();
    }

    /** Unique; stays the same when the message is redelivered. */
    public function messageId(): string
    {
        return $this->delivery->headers[Header::MESSAGE_ID] ?? '';
    }

    /** The id of the message that started the conversation. */
    public function correlationId(): string
    {
        return $this->delivery->headers[Header::CORRELATION_ID] ?? $this->messageId();
    }

    /** The id of the message whose handler sent this one; null for the first message of a conversation. */
    public function causationId(): ?string
    {
        return $this->delivery->headers[Header::CAUSATION_ID] ?? $this->delivery->headers[Header::CORRELATION_ID] ?? null;
    }

    /**
     * The span of this handling, which what the handler sends continues: a child of the one that the message came with. If it came with
     * none, {@see correlationId()} names the trace and {@see messageId()} the span, the same at a redelivery.
     */
    public function trace(): Trace
    {
        $parent = $this->delivery->headers[Header::TRACEPARENT] ?? null;

        return $this->trace ??= $parent !== null
            ? Trace::continue($parent, $this->delivery->headers[Header::TRACESTATE] ?? null)
            : Trace::named(conversationTraceparent($this->correlationId(), $this->messageId()));
    }

    /** Whether the broker may have delivered the message before. */
    public function redelivered(): bool
    {
        return $this->delivery->redelivered;
    }

    /** @internal how often it was delivered again because its worker had ended; 0 also where the bus has no database to count that */
    public function redeliveries(): int
    {
        return $this->delivery->redeliveries;
    }

    /** The number of failed attempts to handle this message. */
    public function failedAttempts(): int
    {
        return (int) ($this->delivery->headers[Header::ATTEMPTS] ?? 0);
    }

    /** @return array<string, string> see {@see Header} */
    public function headers(): array
    {
        return $this->delivery->headers;
    }

    public function header(string $name): ?string
    {
        return $this->delivery->headers[$name] ?? null;
    }

    /** @internal the class of the message */
    public function messageClass(): string
    {
        return $this->class;
    }

    /** The type name that the message travels under. */
    public function type(): string
    {
        return $this->delivery->type;
    }

    /** Adds to each record: `trace_id`, `span_id`, `message_class`, `message_id`, `handler` and `queue`. */
    public function logger(): LoggerInterface
    {
        return $this->messageLogger ??= new MessageLogger($this->logger, $this);
    }

    /** The handler that is called, as `Class::method`. */
    public function handler(): string
    {
        return $this->handler;
    }

    /** The transaction of the handler; null for a handler without a Transaction parameter. */
    public function transaction(): ?Transaction
    {
        return $this->transaction;
    }

    /** @return list<Violation> what is wrong with the message, where {@see Validate} passes invalid messages to the handler */
    public function violations(): array
    {
        return $this->violations;
    }

    /**
     * @internal
     *
     * @param list<Violation> $violations
     */
    public function found(array $violations): void
    {
        $this->violations = $violations;
    }

    /** Whether the sender waits for the value that the handler returns, see {@see Bus::request()}. */
    public function wantsReply(): bool
    {
        return isset($this->delivery->headers[Header::REPLY_TO]);
    }

    /** @internal */
    public function delivery(): Delivery
    {
        return $this->delivery;
    }

    /** @internal */
    public function joins(Transaction $transaction): void
    {
        $this->transaction = $transaction;
    }

    /** Whether the handler is still running, so that it can send messages. */
    public function isOpen(): bool
    {
        return $this->outbox->isOpen();
    }
}
