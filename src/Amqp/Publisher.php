<?php

declare(strict_types=1);

namespace Weft\Amqp;

use Weft\Amqp\Internal\Fields;
use Weft\Native\AmqpConnection;
use Weft\Native\AmqpPublisher;
use Weft\Runtime\Internal\Scheduler;
use Weft\Runtime\Internal\WaitsFor;
use Weft\UsageError;

/**
 * Sends messages over channels of its own; any number of tasks may share it. Made by {@see Connection::publisher()}.
 *
 * With confirms, what the broker has not confirmed is sent again after a reconnect, so each message arrives at least once.
 * Without, what was under way when a connection broke may be lost. While the connection is down, publishing goes on until
 * window or buffer are full, and waits then.
 */
final class Publisher
{
    /** The extension's publish() returns it when the window or the buffer is full. */
    private const FULL = -1;

    /** @var list<AmqpPublisher> unused channels for batches: on a channel of its own a batch can tell its failures from others */
    private array $idle = [];

    /** @internal */
    public function __construct(
        private readonly AmqpConnection $connection,
        private readonly AmqpPublisher $single,
        private readonly bool $confirm,
        private readonly int $window,
    ) {}

    /**
     * Sends one message. With confirms it returns when the broker has taken responsibility for it, without when it is on
     * its way to the socket. Waits for room first.
     *
     * Cancelled while it waits for room, nothing was sent; while it waits for the confirm, the message still arrives.
     *
     * @param string $exchange empty: the one that takes a message to the queue its routing key names
     * @param bool $mandatory whether a message that reaches no queue is a failure; without confirms {@see flush()} tells
     *
     * @throws MessageReturnedException mandatory, and no queue took it
     * @throws MessageNackedException the broker rejected the message (basic.nack), for instance because a queue is full
     * @throws BrokerException such as an exchange that does not exist
     * @throws ConnectionClosedException
     * @throws UsageError names or headers that AMQP cannot carry; nothing was sent
     */
    #[WaitsFor('a confirm of RabbitMQ')]
    public function publish(Message $message, string $exchange = '', string $routingKey = '', bool $mandatory = false): void
    {
        $operation = $this->hand($this->single, $message, $exchange, $routingKey, $mandatory, true);
        if ($operation !== 0) {
            Scheduler::await($operation);
        }
    }

    /**
     * Sends many messages to one address with the window kept full, and returns as {@see publish()} does, when the last
     * one is there. In order; pulled from a generator only as there is room.
     *
     * When it throws or is cancelled, any of the messages handed over so far may have arrived, also those after the one
     * that failed.
     *
     * @param iterable<Message> $messages
     *
     * @throws AmqpException|UsageError as publish() does; of several failures the first
     */
    #[WaitsFor('confirms of RabbitMQ')]
    public function publishAll(iterable $messages, string $exchange = '', string $routingKey = '', bool $mandatory = false): void
    {
        if (!$this->confirm) {
            $this->handAll($this->single, $messages, $exchange, $routingKey, $mandatory);
            return;
        }
        $batch = \array_pop($this->idle) ?? Scheduler::await($this->connection->publisher(true, $this->window));
        $this->handAll($batch, $messages, $exchange, $routingKey, $mandatory);
        try {
            Scheduler::await($batch->flush());
        } catch (MessageReturnedException $unroutable) {
            // The broker has answered for everything: the next batch may use the channel.
            $this->idle[] = $batch;
            throw $unroutable;
        }
        $this->idle[] = $batch;
    }

    /**
     * Waits until the broker has read everything that was published without confirms. With confirms it waits for the calls of other
     * tasks, which receive their failures themselves.
     *
     * @throws MessageReturnedException|ConnectionLostException|ConnectionClosedException
     */
    #[WaitsFor('messages on their way to RabbitMQ')]
    public function flush(): void
    {
        Scheduler::await($this->single->flush());
    }

    /** @param iterable<Message> $messages */
    private function handAll(AmqpPublisher $publisher, iterable $messages, string $exchange, string $routingKey, bool $mandatory): void
    {
        foreach ($messages as $message) {
            $this->hand($publisher, $message, $exchange, $routingKey, $mandatory, false);
        }
    }

    /** @return int the operation that ends with the confirm if it is watched, else 0 */
    #[WaitsFor('room in the window of a publisher')]
    private function hand(AmqpPublisher $publisher, Message $message, string $exchange, string $routingKey, bool $mandatory, bool $watch): int
    {
        $properties = Fields::properties($message);
        do {
            $operation = $publisher->publish($exchange, $routingKey, $message->body, $message->headers, $properties, $message->persistent, $mandatory, $watch);
            if ($operation === self::FULL) {
                Scheduler::await($publisher->ready());
            }
        } while ($operation === self::FULL);

        return $operation;
    }
}
