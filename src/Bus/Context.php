<?php

declare(strict_types=1);

namespace Weft\Bus;

use Psr\Log\LoggerInterface;
use Weft\Bus\Internal\Sending\Due;
use Weft\Bus\Internal\MessageKind;
use Weft\Bus\Internal\Sending\MessageHeaders;
use Weft\Bus\Internal\Sending\HandlerOutbox;
use Weft\Bus\Transport\Delivery;
use Weft\Sql\Transaction;

use function Weft\Native\conversationTraceparent;
use function Weft\Native\traceparent;

/** What a handler knows of the message it handles, and how it sends others. Valid until the handler returns. */
final class Context
{
    private ?string $traceparent = null;
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
    ) {}

    /**
     * Publishes an event to everybody who listens; that may be nobody.
     *
     * It is encoded now and leaves when the handler has returned and its transaction has committed, see {@see DeliveryGuarantee}.
     *
     * @param float|null              $delay seconds before it leaves; see {@see Bus::send()}
     * @param \DateTimeInterface|null $at    when it leaves, instead of a delay
     * @param int<0, 9>|null          $priority see {@see Priority}
     * @param float|null              $expires  seconds from when it leaves, see {@see Expires}
     * @param array<string, string>   $headers  of the application
     * @return string its id, for {@see Bus::cancel()}
     *
     * @throws MessageEncodingFailed
     * @throws InvalidMessageClass
     */
    public function publish(
        object $event,
        ?float $delay = null,
        ?\DateTimeInterface $at = null,
        ?int $priority = null,
        ?float $expires = null,
        array $headers = [],
    ): string {
        $due = Due::of($delay, $at);

        return $this->outbox->add(MessageKind::Event, $event, $this, $due, MessageHeaders::headers($priority, $expires, $due, $headers));
    }

    /**
     * Sends a command to the service that handles it, at the same time as {@see publish()}.
     *
     * @param float|null              $delay seconds before it leaves; see {@see Bus::send()}
     * @param \DateTimeInterface|null $at    when it leaves, instead of a delay
     * @param int<0, 9>|null          $priority see {@see Priority}
     * @param float|null              $expires  seconds from when it leaves, see {@see Expires}
     * @param array<string, string>   $headers  of the application
     * @return string its id, for {@see Bus::cancel()}
     *
     * @throws MessageEncodingFailed
     * @throws InvalidMessageClass
     */
    public function send(
        object $command,
        ?float $delay = null,
        ?\DateTimeInterface $at = null,
        ?int $priority = null,
        ?float $expires = null,
        array $headers = [],
    ): string {
        $due = Due::of($delay, $at);

        return $this->outbox->add(MessageKind::Command, $command, $this, $due, MessageHeaders::headers($priority, $expires, $due, $headers));
    }

    /**
     * @internal
     *
     * @param float|null            $due     as microtime(true) has it
     * @param array<string, string> $headers of its own
     */
    public function add(MessageKind $kind, object $message, ?float $due, array $headers = []): string
    {
        return $this->outbox->add($kind, $message, $this, $due, $headers);
    }

    /** @internal whether the handler has sent anything by now */
    public function hasSent(): bool
    {
        return $this->outbox->isUsed();
    }

    /** Stays the same when the message is delivered again. */
    public function messageId(): string
    {
        return $this->delivery->headers[Header::MESSAGE_ID] ?? '';
    }

    /** The id of the message that started the conversation. */
    public function correlationId(): string
    {
        return $this->delivery->headers[Header::CORRELATION_ID] ?? $this->messageId();
    }

    /** The id of the message whose handler sent this one; null when the message starts the conversation. */
    public function causationId(): ?string
    {
        return $this->delivery->headers[Header::CAUSATION_ID] ?? $this->delivery->headers[Header::CORRELATION_ID] ?? null;
    }

    /** 32 hex digits; shared by everything that one request led to. */
    public function traceId(): string
    {
        return \substr($this->traceparent(), 3, 32);
    }

    /**
     * The W3C `traceparent` for calls this handler makes: a new span of the trace the message came with. Where it came with
     * none, the trace is named by {@see correlationId()} and the span by {@see messageId()}, the same at a redelivery.
     */
    public function traceparent(): string
    {
        $parent = $this->delivery->headers[Header::TRACEPARENT] ?? null;

        return $this->traceparent ??= $parent !== null
            ? traceparent($parent)
            : conversationTraceparent($this->correlationId(), $this->messageId());
    }

    /** Whether the message may have been handled before. */
    public function redelivered(): bool
    {
        return $this->delivery->redelivered;
    }

    /** How often handling this message was tried before and has failed. */
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

    /** The name the message's type travels under. */
    public function type(): string
    {
        return $this->delivery->type;
    }

    public function logger(): LoggerInterface
    {
        return $this->logger;
    }

    /** The handler that is called, as `Class::method`. */
    public function handler(): string
    {
        return $this->handler;
    }

    /** The transaction of the handler; null when it takes none. */
    public function transaction(): ?Transaction
    {
        return $this->transaction;
    }

    /** @return list<Violation> what is wrong with the message, where {@see Validate} hands invalid ones on */
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

    /** Whether somebody waits for what the handler returns, see {@see Bus::request()}. */
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

    /** Whether the handler is still running, so that it can publish. */
    public function isOpen(): bool
    {
        return $this->outbox->isOpen();
    }
}
