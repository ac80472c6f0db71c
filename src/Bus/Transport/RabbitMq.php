<?php

declare(strict_types=1);

namespace Weft\Bus\Transport;

use Psr\Log\LoggerInterface;
use Weft\Amqp\AmqpException;
use Weft\InvalidDsnError;
use Weft\Amqp\BrokerException;
use Weft\Bus\DeadLetters;
use Weft\Bus\Internal\Sending\DelayStore;
use Weft\Bus\Internal\RabbitMq\ConnectionLog;
use Weft\Bus\Internal\RabbitMq\DelayQueues;
use Weft\Bus\Internal\RabbitMq\Publisher;
use Weft\Bus\Internal\RabbitMq\RabbitMqConsumer;
use Weft\Bus\Internal\RabbitMq\CombinedConsumer;
use Weft\Bus\Internal\RabbitMq\Subscription;
use Weft\Bus\Internal\Wakeup;
use Weft\Bus\TopologyConflictException;
use Weft\Bus\TransportException;
use Weft\Bus\UndefinedQueueException;
use Weft\Native\AmqpConnection;
use Weft\Native\AmqpConsumer;
use Weft\Runtime\Internal\Scheduler;
use Weft\Runtime\Internal\WaitsFor;

use function Weft\all;

/**
 * RabbitMQ 3.10 and later. Two durable direct exchanges, one for commands and one for events, route by message type to one durable
 * queue per service.
 *
 * Publishing and consuming use separate connections, because a broker that is short of memory or disk stops reading from publishing
 * connections, acknowledgements included. Declarations use the consuming connection. Both connections recover by themselves;
 * unconfirmed messages are published again.
 */
final class RabbitMq implements ReportingTransport, DelayingTransport, TemporaryQueues
{
    private const NOT_FOUND = 404;
    private const PRECONDITION_FAILED = 406;

    /** Messages that one consumer may hold: the prefetch count of AMQP has 16 bits. */
    private const MAX_PREFETCH = 65_535;

    /** Milliseconds that a temporary queue lives without a consumer: longer than a broker takes to restart. */
    private const TEMPORARY_QUEUE_EXPIRES = 300_000;
    private const EXCHANGES = [
        ['name' => Publisher::COMMANDS, 'kind' => 'direct', 'durable' => true],
        ['name' => Publisher::EVENTS, 'kind' => 'direct', 'durable' => true],
    ];

    private ?AmqpConnection $consuming = null;

    /** @var array<int, RabbitMqConsumer> open ones */
    private array $consumers = [];

    /** @var array<string, array<string, true>> types by queue, of the queues declared here */
    private array $declared = [];

    private bool $closed = false;
    private readonly DelayQueues $delayQueues;

    /** @param array<string, RabbitMqQueue> $queues */
    private function __construct(
        private readonly string $dsn,
        private readonly AmqpConnection $connection,
        private readonly Publisher $publisher,
        private readonly RabbitMqQueue $queue,
        private readonly array $queues,
        private readonly bool $declares,
    ) {
        $this->delayQueues = new DelayQueues($connection, $publisher, $queue->type === 'quorum');
    }

    /**
     * @param string       $dsn        `amqp://user:password@host:5672/vhost` or `amqps://…`
     * @param bool         $persistent whether the broker stores messages on disk; otherwise a restart loses them. Dead letters are always
     *                                 persistent
     * @param int<1, max>  $window     number of messages that may await their confirmation
     * @param RabbitMqQueue|null           $queue  the kind of queues to declare; null for classic queues
     * @param array<string, RabbitMqQueue> $queues the same for single queues, by name
     * @param bool         $declare    whether the bus may declare and bind. Without it exchanges, queues and dead-letter queues must exist,
     *                                 and delayed messages, delayed retries and requests are unavailable without a database
     *
     * @throws InvalidDsnError
     * @throws TransportException when the broker cannot be reached, or refuses user, password or virtual host
     */
    #[WaitsFor('RabbitMQ to declare exchanges')]
    public static function connect(
        string $dsn,
        bool $persistent = true,
        int $window = 1000,
        ?RabbitMqQueue $queue = null,
        array $queues = [],
        bool $declare = true,
    ): self {
        $connection = self::open($dsn);

        try {
            // Also for programs that only publish: an event without listeners is not an error.
            $declare && Scheduler::await($connection->declare(self::EXCHANGES, [], []));
        } catch (AmqpException $exception) {
            throw new TransportException("Cannot declare the exchanges \"" . Publisher::COMMANDS . '" and "' . Publisher::EVENTS . "\": {$exception->getMessage()}", $exception);
        }

        $queue ??= RabbitMqQueue::classic();
        $prioritises = \array_filter([$queue, ...\array_values($queues)], static fn(RabbitMqQueue $queue): bool => isset($queue->arguments['x-max-priority'])) !== [];

        return new self($dsn, $connection, new Publisher($connection, $persistent, $window, $prioritises), $queue, $queues, $declare);
    }

    /**
     * @throws TopologyConflictException when the queue exists with other arguments
     * @throws UndefinedQueueException when it does not exist and the bus must not declare it
     */
    public function declare(string $queue, array $types): void
    {
        if (!$this->declares($queue)) {
            $this->attach($queue);

            return;
        }
        $this->declared[$queue] = ($this->declared[$queue] ?? []) + \array_fill_keys($types, true);
        $dead = DeadLetters::queueOf($queue);
        $arguments = [$queue => $this->optionsOf($queue)->arguments, $dead => $this->optionsOf($queue)->dead];
        $bindings = DelayQueues::bindings($queue, $types);
        foreach ($types as $type) {
            foreach (self::EXCHANGES as $exchange) {
                $bindings[] = ['exchange' => $exchange['name'], 'queue' => $queue, 'routingKey' => $type];
            }
        }
        $this->declareQueue($dead, $arguments[$dead], []);
        $this->declareQueue($queue, $arguments[$queue], $bindings);
    }

    /** @internal as the DSN names it */
    public function virtualHost(): string
    {
        // AMQP URI specification: without a path it is "/".
        return \preg_match('~^[^:]+://[^/?]*/([^?]*)~', $this->dsn, $match) === 1 ? \rawurldecode($match[1]) : '/';
    }

    /** @internal whether it declares and binds a queue */
    public function declares(string $queue): bool
    {
        return $this->declares && !$this->optionsOf($queue)->isExisting();
    }

    /**
     * @internal the queues that it declares beside a queue of another program
     *
     * @return list<string> a line each
     */
    public function plan(string $queue): array
    {
        return $this->declares ? ['queue ' . DeadLetters::queueOf($queue), 'queue ' . DelayQueues::returning($queue)[0]] : [];
    }

    /** Uses a queue that another program has declared. */
    private function attach(string $queue): void
    {
        $this->require($queue);
        $this->declared[$queue] ??= [];
        $dead = DeadLetters::queueOf($queue);
        if (!$this->declares) {
            $this->require($dead);

            return;
        }
        $this->declareQueue($dead, $this->optionsOf($queue)->dead, []);
        [$retries, $arguments, $bindings] = DelayQueues::returning($queue);
        $this->declareQueue($retries, $arguments, $bindings);
    }

    private function require(string $queue): void
    {
        try {
            $this->state($queue);
        } catch (UndefinedQueueException $undefined) {
            throw new UndefinedQueueException("Queue \"{$queue}\" does not exist on the broker, and this bus is configured not to declare it", $undefined);
        }
    }

    /** The broker deletes the queue five minutes after its last consumer. */
    #[WaitsFor('RabbitMQ to declare a queue')]
    public function openTemporary(string $queue): void
    {
        $this->declares || throw new TransportException("Replies need a queue of their own, and this bus is configured to declare none");
        $declared = ['name' => $queue, 'durable' => true, 'arguments' => ['x-queue-type' => 'classic', 'x-expires' => self::TEMPORARY_QUEUE_EXPIRES]];
        try {
            Scheduler::await($this->consuming()->declare(self::EXCHANGES, [$declared], []));
        } catch (AmqpException $exception) {
            throw new TransportException("Cannot declare queue \"{$queue}\": {$exception->getMessage()}", $exception);
        }
    }

    #[WaitsFor('RabbitMQ to delete a queue')]
    public function delete(string $queue): void
    {
        $this->declares || throw new TransportException("Queue \"{$queue}\" cannot be deleted: this bus is configured to declare none");
        unset($this->declared[$queue]);
        try {
            foreach ([$queue, DeadLetters::queueOf($queue)] as $name) {
                Scheduler::await($this->consuming()->deleteQueue($name));
            }
        } catch (AmqpException $exception) {
            throw new TransportException("Cannot delete queue \"{$queue}\": {$exception->getMessage()}", $exception);
        }
    }

    #[WaitsFor('RabbitMQ to delete a queue')]
    public function dropTemporary(string $queue): void
    {
        try {
            Scheduler::await($this->consuming()->deleteQueue($queue));
        } catch (AmqpException) {
            // The broker deletes it after TEMPORARY_QUEUE_EXPIRES.
        }
    }

    public function publish(iterable $messages, bool $confirmed = true): void
    {
        if ($messages !== []) {
            $confirmed ? $this->publisher->publishConfirmed($messages) : $this->publisher->publishUnconfirmed($messages);
        }
    }

    public function put(string $queue, array $messages): void
    {
        $this->publisher->publishTo($queue, $messages);
    }

    public function consume(string $queue, int $prefetch): Consumer
    {
        $arrival = new Wakeup("messages in queue \"{$queue}\"");
        if ($prefetch <= self::MAX_PREFETCH) {
            return $this->consumer($queue, $prefetch, $arrival);
        }
        if ($this->optionsOf($queue)->isStream()) {
            throw new \ValueError("The prefetch of the stream \"{$queue}\" must be at most " . self::MAX_PREFETCH . ", got {$prefetch}");
        }
        $consumers = [];
        try {
            for ($left = $prefetch; $left > 0; $left -= self::MAX_PREFETCH) {
                $consumers[] = $this->consumer($queue, \min(self::MAX_PREFETCH, $left), $arrival);
            }
        } catch (\Throwable $thrown) {
            foreach ($consumers as $consumer) {
                $consumer->close();
            }
            throw $thrown;
        }

        return new CombinedConsumer($consumers, $arrival);
    }

    #[WaitsFor('RabbitMQ to start a consumer')]
    private function consumer(string $queue, int $prefetch, Wakeup $arrival): RabbitMqConsumer
    {
        $options = $this->optionsOf($queue);
        $subscription = new Subscription(
            function () use ($queue, $prefetch, $options): AmqpConsumer {
                /** @var AmqpConsumer */
                return Scheduler::await($this->consuming()->consume($queue, $prefetch, false, $options->consuming()));
            },
            function () use ($queue): bool {
                $known = $this->declared[$queue] ?? null;
                $known === null || $this->declare($queue, \array_map(strval(...), \array_keys($known)));

                return $known !== null;
            },
            $options->isStream(),
        );
        try {
            $subscription->open();
        } catch (AmqpException $exception) {
            throw self::failed($queue, $exception);
        }
        $consumer = new RabbitMqConsumer($subscription, $this->publisher, $queue, $prefetch, $arrival, $this->forget(...));

        return $this->consumers[\spl_object_id($consumer)] = $consumer;
    }

    public function depth(string $queue): int
    {
        return $this->state($queue)[0];
    }

    public function isConsumed(string $queue): bool
    {
        return $this->state($queue)[1] > 0;
    }

    #[WaitsFor('the connection to RabbitMQ to close')]
    public function close(): void
    {
        if ($this->closed) {
            return;
        }
        $this->closed = true;
        foreach ($this->consumers as $consumer) {
            $consumer->close();
        }
        if ($this->consuming !== null) {
            Scheduler::await($this->consuming->close());
        }
        Scheduler::await($this->connection->close());
    }

    /** Includes the consuming connection once it is open. */
    public function report(LoggerInterface $logger): void
    {
        $connections = \array_filter(['publishing' => $this->connection, 'consuming' => $this->consuming]);
        $follow = static fn(AmqpConnection $connection, string $purpose): \Closure => (new ConnectionLog($connection, $purpose, $logger))->follow(...);
        all(\array_map($follow, $connections, \array_keys($connections)));
    }

    /**
     * @return array{publishing: array{string, string}, consuming: array{string, string}|null} state (`connected`, `connecting`, `blocked`
     *         or `closed`) and reason of each connection
     */
    public function status(): array
    {
        return ['publishing' => $this->connection->status(), 'consuming' => $this->consuming?->status()];
    }

    /** @internal stores delayed messages in queues of the broker when there is no database */
    public function delays(): ?DelayStore
    {
        return $this->declares ? $this->delayQueues : null;
    }

    /** @return array{int, int} number of ready messages, and of consumers */
    #[WaitsFor('the state of a queue of RabbitMQ')]
    private function state(string $queue): array
    {
        try {
            /** @var array{int, int} */
            return Scheduler::await(($this->consuming ?? $this->connection)->queueState($queue));
        } catch (AmqpException $exception) {
            throw self::failed($queue, $exception);
        }
    }

    private function optionsOf(string $queue): RabbitMqQueue
    {
        return $this->queues[$queue] ?? $this->queue;
    }

    /**
     * @param array<string, mixed> $arguments
     * @param list<array{exchange: string, queue: string, routingKey: string, arguments?: array<string, mixed>}> $bindings
     */
    #[WaitsFor('RabbitMQ to declare a queue')]
    private function declareQueue(string $queue, array $arguments, array $bindings): void
    {
        \ksort($arguments);
        try {
            Scheduler::await($this->consuming()->declare([...self::EXCHANGES, ...DelayQueues::DUE_EXCHANGES], [['name' => $queue, 'durable' => true, 'arguments' => $arguments]], $bindings));
        } catch (AmqpException $exception) {
            if ($exception instanceof BrokerException && $exception->getCode() === self::PRECONDITION_FAILED) {
                throw new TopologyConflictException("Queue \"{$queue}\" exists with other arguments than " . (string) \json_encode(['durable' => true] + $arguments, \JSON_UNESCAPED_SLASHES)
                    . ": {$exception->getMessage()}", $exception);
            }
            throw new TransportException("Cannot declare queue \"{$queue}\": {$exception->getMessage()}", $exception);
        }
    }

    private function consuming(): AmqpConnection
    {
        if ($this->consuming === null) {
            $opened = self::open($this->dsn);
            // Another task may have opened it first; then this connection closes with its last reference.
            $this->consuming ??= $opened;
        }

        return $this->consuming;
    }

    private function forget(RabbitMqConsumer $consumer): void
    {
        unset($this->consumers[\spl_object_id($consumer)]);
    }

    #[WaitsFor('the connection to RabbitMQ')]
    private static function open(string $dsn): AmqpConnection
    {
        try {
            return Scheduler::await(AmqpConnection::open($dsn));
        } catch (InvalidDsnError $invalid) {
            throw $invalid;
        } catch (AmqpException $exception) {
            throw new TransportException("RabbitMQ: {$exception->getMessage()}", $exception);
        }
    }

    private static function failed(string $queue, AmqpException $exception): UndefinedQueueException|TransportException
    {
        return $exception instanceof BrokerException && $exception->getCode() === self::NOT_FOUND
            ? new UndefinedQueueException("Queue \"{$queue}\" is not declared on the broker: {$exception->getMessage()}", $exception)
            : new TransportException("Queue \"{$queue}\": {$exception->getMessage()}", $exception);
    }
}
