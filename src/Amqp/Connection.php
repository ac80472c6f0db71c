<?php

declare(strict_types=1);

namespace Weft\Amqp;

use Weft\Amqp\Internal\Fields;
use Weft\InvalidDsnError;
use Weft\Native\AmqpConnection;
use Weft\Runtime\Internal\Scheduler;
use Weft\Runtime\Internal\WaitsFor;
use Weft\UsageError;

/**
 * One connection to an AMQP 0-9-1 broker. Any number of tasks may share it; outside `Weft\run()` its calls simply block.
 *
 * It is driven by a thread of its own: heartbeats and acknowledgements go on while PHP computes. A connection that was lost
 * is restored in the background with everything declared here, its publishers and its consumers; calls that need it wait
 * or throw {@see ConnectionLostException}. A wait that is cancelled leaves the connection usable, and what it asked for may still
 * happen at the broker.
 */
final class Connection
{
    private function __construct(private readonly AmqpConnection $native) {}

    /**
     * Connects and logs in; tries the hosts of the DSN in turn, each for `connect_timeout` (5 seconds by default).
     *
     * @param string $dsn `amqp://user:password@host:5672,other/vhost?heartbeat=10`, or `amqps://`; see docs/reference/amqp.md
     *
     * @throws InvalidDsnError
     * @throws ConnectionException a subclass names the cause
     */
    #[WaitsFor('the connection to RabbitMQ')]
    public static function connect(#[\SensitiveParameter] string $dsn): self
    {
        return new self(Scheduler::await(AmqpConnection::open($dsn)));
    }

    /**
     * Declares exchanges first, then queues, then bindings, in few round trips. An object that exists must have the same properties.
     * The connection declares all of them again after a reconnect.
     *
     * @throws BrokerException the message names the exchange, queue or binding; what was declared before it stays
     * @throws ConnectionLostException|ConnectionClosedException
     * @throws UsageError names or arguments that AMQP cannot carry
     */
    #[WaitsFor('RabbitMQ to declare exchanges and queues')]
    public function declare(Exchange|Queue|Binding ...$parts): void
    {
        $exchanges = $queues = $bindings = [];
        foreach ($parts as $part) {
            match (true) {
                $part instanceof Exchange => $exchanges[] = Fields::exchange($part),
                $part instanceof Queue => $queues[] = Fields::queue($part),
                $part instanceof Binding => $bindings[] = Fields::binding($part),
            };
        }
        Scheduler::await($this->native->declare($exchanges, $queues, $bindings));
    }

    /**
     * A publisher on a channel of its own. One for the whole process will do.
     *
     * @param bool $confirm whether publishing waits for the broker's confirm
     * @param positive-int $window most messages that await their confirm at once, for {@see Publisher::publish()} and for
     *     each {@see Publisher::publishAll()}; unused without confirms
     *
     * @throws ConnectionLostException|ConnectionClosedException
     * @throws \ValueError the window is less than 1
     */
    #[WaitsFor('RabbitMQ to open a channel')]
    public function publisher(bool $confirm = true, int $window = 1000): Publisher
    {
        if ($window < 1) {
            throw new \ValueError("The window of a publisher must be at least 1, got {$window}");
        }

        return new Publisher($this->native, Scheduler::await($this->native->publisher($confirm, $window)), $confirm, $window);
    }

    /**
     * Starts to receive the messages of a queue.
     *
     * @param int $prefetch most deliveries not yet settled at once, 0…65535; with 0 there is no limit and a long queue
     *     comes into memory as fast as the network allows
     * @param bool $exclusive be the only consumer of the queue, now and after each reconnect
     * @param array<string, mixed> $arguments such as `x-priority`, or `x-stream-offset` for a stream
     *
     * @throws BrokerException such as a queue that does not exist, or one that has another consumer and should not
     * @throws ConnectionLostException|ConnectionClosedException
     * @throws UsageError prefetch out of bounds, or arguments that AMQP cannot carry
     */
    #[WaitsFor('RabbitMQ to start a consumer')]
    public function consume(string $queue, int $prefetch = 100, bool $exclusive = false, array $arguments = []): Consumer
    {
        return new Consumer(Scheduler::await($this->native->consume($queue, $prefetch, $exclusive, $arguments)));
    }

    /**
     * How many messages are ready in a queue, and how many consumers it has. RabbitMQ may count before messages that were
     * published without confirms have entered.
     *
     * @throws BrokerException the queue does not exist
     * @throws ConnectionLostException|ConnectionClosedException
     */
    #[WaitsFor('the state of a queue of RabbitMQ')]
    public function queueState(string $queue): QueueState
    {
        /** @var array{int, int} $state */
        $state = Scheduler::await($this->native->queueState($queue));

        return new QueueState($state[0], $state[1]);
    }

    /**
     * Removes the messages that are ready; those delivered and not yet settled stay.
     *
     * @return int how many were removed
     *
     * @throws BrokerException the queue does not exist
     * @throws ConnectionLostException|ConnectionClosedException
     */
    #[WaitsFor('RabbitMQ to purge a queue')]
    public function purgeQueue(string $queue): int
    {
        return Scheduler::await($this->native->purgeQueue($queue));
    }

    /**
     * Deletes a queue with its messages and bindings, and forgets it. One that does not exist is fine with RabbitMQ.
     *
     * @return int how many messages were removed with it
     *
     * @throws BrokerException|ConnectionLostException|ConnectionClosedException
     */
    #[WaitsFor('RabbitMQ to delete a queue')]
    public function deleteQueue(string $queue): int
    {
        return Scheduler::await($this->native->deleteQueue($queue));
    }

    /**
     * Deletes an exchange with its bindings, and forgets both. One that does not exist is fine with RabbitMQ.
     *
     * @throws BrokerException such as one of the broker's own, `amq.…`
     * @throws ConnectionLostException|ConnectionClosedException
     */
    #[WaitsFor('RabbitMQ to delete an exchange')]
    public function deleteExchange(string $exchange): void
    {
        Scheduler::await($this->native->deleteExchange($exchange));
    }

    /** How the connection is doing right now. Never waits. */
    public function status(): Status
    {
        [$state, $reason] = $this->native->status();

        return new Status(State::from($state), $reason);
    }

    /**
     * Waits for the next event of the connection. `while ($event = $connection->nextEvent())` in a detached task feeds a log. The last
     * 256 unread events are kept.
     *
     * @return ?Event null once the connection is closed
     */
    #[WaitsFor('the next event of a connection to RabbitMQ')]
    public function nextEvent(): ?Event
    {
        $event = Scheduler::await($this->native->nextEvent());

        return $event === null ? null : new Event(EventKind::from($event[0]), $event[1]);
    }

    /**
     * Sends buffered messages, waits at most 5 seconds for outstanding confirms, and closes the connection with its publishers and
     * consumers. Unsettled deliveries return to their queues. A second call does nothing.
     */
    #[WaitsFor('the connection to RabbitMQ to close')]
    public function close(): void
    {
        Scheduler::await($this->native->close());
    }
}
