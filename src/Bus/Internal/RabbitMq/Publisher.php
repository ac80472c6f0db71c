<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\RabbitMq;

use Weft\Amqp\AmqpException;
use Weft\Amqp\BrokerException;
use Weft\Amqp\MessageNackedException;
use Weft\Amqp\MessageReturnedException;
use Weft\UsageError;
use Weft\Bus\Header;
use Weft\Bus\Internal\MessageKind;
use Weft\Bus\Priority;
use Weft\Bus\PublishException;
use Weft\Bus\Transport\Outgoing;
use Weft\Bus\UndefinedQueueException;
use Weft\Bus\UnroutableMessageException;
use Weft\Native\AmqpConnection;
use Weft\Native\AmqpPublisher;
use Weft\Runtime\Internal\Scheduler;
use Weft\Runtime\Internal\WaitsFor;

/**
 * Publishes over one connection, with and without confirmation.
 *
 * @internal
 */
final class Publisher
{
    /** The exchange determines the kind of a message; the routing key is its type. */
    public const COMMANDS = 'weft.commands';
    public const EVENTS = 'weft.events';

    /** Returned by publish() of the extension when window or buffer are full. */
    private const FULL = -1;
    /** The first code with which RabbitMQ closes the connection; those below close one channel (specification §1.2). */
    private const CONNECTION_ERRORS = 500;

    private ?AmqpPublisher $single = null;
    private ?AmqpPublisher $unconfirmed = null;

    /** @var list<AmqpPublisher> for batches, not in use: on a channel of its own a batch knows which failures are its own */
    private array $idle = [];

    /** @param bool $prioritises whether a queue may have priorities */
    public function __construct(
        private readonly AmqpConnection $connection,
        private readonly bool $persistent,
        private readonly int $window,
        private readonly bool $prioritises,
    ) {}

    /**
     * @param iterable<Outgoing> $messages not an empty array
     * @throws UnroutableMessageException|PublishException
     */
    public function publishConfirmed(iterable $messages): void
    {
        try {
            \is_array($messages) && \count($messages) === 1 ? $this->one($messages[0]) : $this->batch($messages);
        } catch (MessageReturnedException $unroutable) {
            throw new UnroutableMessageException("No queue is declared for this command; declare() or consume() of the bus that handles it declares one: {$unroutable->getMessage()}", $unroutable);
        } catch (AmqpException | UsageError $exception) {
            throw self::failed('', $exception);
        }
    }

    /**
     * Returns when the messages are on their way to the socket.
     *
     * @param iterable<Outgoing> $messages
     * @throws PublishException
     */
    public function publishUnconfirmed(iterable $messages): void
    {
        try {
            $publisher = $this->unconfirmed ??= $this->open(false);
            foreach ($messages as $message) {
                $this->route($publisher, $message, false);
            }
        } catch (AmqpException | UsageError $exception) {
            throw self::failed('', $exception);
        }
    }

    /**
     * Puts messages into one queue, persistent and confirmed.
     *
     * @param list<Outgoing>       $messages
     * @param array<string, mixed> $extra    of the delivery that is dead-lettered
     * @throws UndefinedQueueException|PublishException
     */
    public function publishTo(string $queue, array $messages, array $extra = []): void
    {
        try {
            $publisher = $this->single ??= $this->open(true);
            $watched = [];
            try {
                foreach ($messages as $message) {
                    $message = $message->mustRoute ? $message : new Outgoing($message->type, $message->body, $message->headers, mustRoute: true);
                    $watched[] = $this->hand($publisher, '', $queue, $message, Properties::direct($message, $extra), true, true);
                }
            } catch (UsageError $unfit) {
                $this->awaitAll($watched);
                throw $unfit;
            }
            $this->awaitAll($watched);
        } catch (MessageReturnedException $unroutable) {
            throw new UndefinedQueueException("Queue \"{$queue}\" is not declared on the broker: {$unroutable->getMessage()}", $unroutable);
        } catch (AmqpException | UsageError $exception) {
            throw self::failed(" to queue \"{$queue}\"", $exception);
        }
    }

    /**
     * Sends a message through an exchange of the transport's own, persistent and confirmed.
     *
     * @throws PublishException
     */
    #[WaitsFor('a confirm of RabbitMQ')]
    public function publishVia(string $exchange, string $key, Outgoing $message): void
    {
        try {
            $publisher = $this->single ??= $this->open(true);
            $must = new Outgoing($message->type, $message->body, $message->headers, mustRoute: true);
            Scheduler::await($this->hand($publisher, $exchange, $key, $must, Properties::direct($message), true, true));
        } catch (AmqpException | UsageError $exception) {
            throw self::failed(" to exchange \"{$exchange}\"", $exception);
        }
    }

    /**
     * @param list<int> $operations
     * @throws AmqpException the first failure, once all have ended
     */
    #[WaitsFor('confirms of RabbitMQ')]
    private function awaitAll(array $operations): void
    {
        $failure = null;
        foreach ($operations as $operation) {
            try {
                Scheduler::await($operation);
            } catch (AmqpException $exception) {
                $failure ??= $exception;
            }
        }
        if ($failure !== null) {
            throw $failure;
        }
    }

    #[WaitsFor('a confirm of RabbitMQ')]
    private function one(Outgoing $message): void
    {
        $publisher = $this->single ??= $this->open(true);
        Scheduler::await($this->route($publisher, $message, true));
    }

    /**
     * Keeps the window full and waits for outstanding confirms at the end only.
     *
     * @param iterable<Outgoing> $messages
     */
    #[WaitsFor('confirms of RabbitMQ')]
    private function batch(iterable $messages): void
    {
        $publisher = \array_pop($this->idle) ?? $this->open(true);
        foreach ($messages as $message) {
            $this->route($publisher, $message, false);
        }
        try {
            Scheduler::await($publisher->flush());
        } catch (MessageReturnedException $unroutable) {
            // All confirms of the channel have arrived: the next batch may use it.
            $this->idle[] = $publisher;
            throw $unroutable;
        }
        $this->idle[] = $publisher;
    }

    /** @return int the operation that ends with the confirmation, if it is watched */
    private function route(AmqpPublisher $publisher, Outgoing $message, bool $watch): int
    {
        $isCommand = ($message->headers[Header::KIND] ?? null) === MessageKind::Command->value;
        $exchange = $message->headers[Header::EXCHANGE] ?? ($isCommand ? self::COMMANDS : self::EVENTS);
        $envelope = Properties::routed($message);
        if ($this->prioritises) {
            // The broker treats a message without a priority as lowest.
            $envelope[1] += ['priority' => Priority::NORMAL];
        }

        return $this->hand($publisher, $exchange, $message->headers[Header::ROUTING_KEY] ?? $message->type, $message, $envelope, $this->persistent, $watch);
    }

    /**
     * @param array{array<string, mixed>, array<string, string|int>} $envelope headers and properties
     * @return int the operation that ends with the confirmation, if it is watched
     */
    #[WaitsFor('room in the window of a publisher')]
    private function hand(AmqpPublisher $publisher, string $exchange, string $key, Outgoing $message, array $envelope, bool $persistent, bool $watch): int
    {
        /** @var array{contentType?: string, contentEncoding?: string, priority?: int, correlationId?: string, replyTo?: string, expiration?: string, messageId?: string, timestamp?: int, type?: string, appId?: string} $properties */
        [$headers, $properties] = $envelope;
        do {
            $operation = $publisher->publish($exchange, $key, $message->body, $headers, $properties, $persistent, $message->mustRoute, $watch);
            if ($operation === self::FULL) {
                Scheduler::await($publisher->ready());
            }
        } while ($operation === self::FULL);

        return $operation;
    }

    /**
     * A failure that concerns only this message counts as refused: headers beyond one frame, or a body beyond the broker's limit. With an error
     * that closes the connection the broker does not say which of the unconfirmed messages is the cause: one by one, the others pass.
     */
    private static function failed(string $where, AmqpException|UsageError $exception): PublishException
    {
        $closed = $exception instanceof BrokerException && $exception->getCode() >= self::CONNECTION_ERRORS;

        return new PublishException(
            "Cannot publish{$where}: {$exception->getMessage()}",
            $exception,
            refused: $exception instanceof BrokerException && !$closed || $exception instanceof UsageError,
            nacked: $exception instanceof MessageNackedException || $closed,
        );
    }

    #[WaitsFor('RabbitMQ to open a channel')]
    private function open(bool $confirm): AmqpPublisher
    {
        return Scheduler::await($this->connection->publisher($confirm, $this->window));
    }
}
