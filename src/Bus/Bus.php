<?php

declare(strict_types=1);

namespace Weft\Bus;

use Weft\Bus\Internal\Consuming\Receiver;
use Weft\Bus\Internal\Consuming\WorkerOptions;
use Weft\Bus\Internal\Cron;
use Weft\Bus\Internal\Dsn;
use Weft\Bus\Internal\Identifier;
use Weft\Bus\Internal\MessageKind;
use Weft\Bus\Internal\Requests\Requests;
use Weft\Bus\Internal\Sending\Sender;
use Weft\Bus\Internal\Setup;
use Weft\Internal\Number;
use Weft\Sql\Database;

/**
 * Sends commands, publishes events and runs the handlers of a queue.
 *
 * A command has exactly one handler, an event any number of listeners. Messages are plain objects; handlers are public methods
 * marked with {@see CommandHandler}, {@see EventListener} or {@see QueryHandler}. Delivery is at least once; with a database each
 * effect inside a handler's transaction happens exactly once, see {@see DeliveryGuarantee}.
 *
 * ```php
 * $bus = Bus::connect('amqp://localhost', $database)->handlers(new Customers());
 * $bus->queue('customers')->declare();
 * $bus->send(new StoreCustomer('7', 'Zoë'));
 * $bus->consume('customers');
 * ```
 */
final class Bus
{
    private readonly Sender $sender;
    private readonly Receiver $receiver;
    private readonly Requests $requests;

    private function __construct(private readonly Setup $setup)
    {
        $this->sender = new Sender($setup);
        $this->receiver = new Receiver($setup);
        $this->requests = new Requests($setup);
    }

    /**
     * Connects to the broker.
     *
     * @param string|Transport $transport `amqp://user:password@host:5672/vhost`, `amqps://…`,
     *                                    `postgres://user:password@host:5432/database`, `sqlite:path.db`,
     *                                    `memory:`, or a transport with options of its own
     * @param Database|null    $database  runs the transactions of handlers and stores inbox, outbox, delayed messages and
     *                                    sagas. When the messages are in the same PostgreSQL database or SQLite file,
     *                                    effects and acknowledgements commit together
     *
     * @throws \ValueError         when the DSN is invalid
     * @throws TransportException when the broker cannot be reached
     */
    public static function connect(string|Transport $transport, ?Database $database = null, BusOptions $options = new BusOptions()): self
    {
        return new self(new Setup(\is_string($transport) ? Dsn::connect($transport, $database) : $transport, $database, $options));
    }

    /**
     * Registers every marked method of objects, and sagas by class name. Of an object or saga that is refused, nothing is registered.
     *
     * @param object|class-string ...$services objects with methods marked {@see CommandHandler}, {@see EventListener},
     *                                         {@see QueryHandler} or {@see Upcaster}; classes marked {@see Saga\Saga}; names of other
     *                                         classes, which the container provides
     *
     * @throws InvalidHandlerError      when a method cannot be a handler or a class cannot be a saga; names it and the parameter
     * @throws DuplicateHandlerError    when a command would have two handlers, or a listener be registered twice; names them
     * @throws InvalidMessageClassError when a message class cannot be encoded; names the property
     * @throws InvalidUpcasterException when a method cannot be an upcaster, or its version is already registered or not older than the class
     */
    public function handlers(object|string ...$services): static
    {
        \array_walk($services, $this->setup->register(...));

        return $this;
    }

    /**
     * Declares, counts, empties, pauses and inspects a queue. The call itself does not contact the broker.
     *
     * @param string $name 1 to 250 bytes of UTF-8 without NUL
     *
     * @throws \ValueError when the name is invalid
     */
    public function queue(string $name): Queue
    {
        Identifier::check('A queue name', $name, 250);

        return new Queue($name, $this->setup, $this->receiver);
    }

    /** Counters, what the bus stores in its database, and its message classes. */
    public function admin(): Admin
    {
        return new Admin($this->setup, $this->sender);
    }

    /**
     * Sends a command and returns when the broker has confirmed it. Inside a handler it behaves as {@see Context::send()}: the command
     * is published after the handler's transaction has committed. A delayed command is stored; the call returns when it is.
     *
     * @return string the message id, for {@see cancel()}
     *
     * @throws UnroutableMessageException when no queue is declared for the command; a delayed command waits for one instead
     * @throws PublishException           when the broker refuses the message or cannot be reached
     * @throws MessageEncodingException
     * @throws \Weft\Sql\SqlException when a delayed command cannot be stored
     */
    public function send(object $command, ?SendOptions $options = null): string
    {
        return $this->sender->one(MessageKind::Command, $command, $options);
    }

    /**
     * Publishes an event and returns when the broker has confirmed it. Inside a handler it behaves as {@see Context::publish()}: the
     * event is published after the handler's transaction has committed.
     *
     * @return string the message id, for {@see cancel()}
     *
     * @throws PublishException         when the broker refuses the message or cannot be reached
     * @throws MessageEncodingException
     * @throws \Weft\Sql\SqlException when a delayed event cannot be stored
     */
    public function publish(object $event, ?SendOptions $options = null): string
    {
        return $this->sender->one(MessageKind::Event, $event, $options);
    }

    /**
     * Sends many commands in order without waiting for each confirmation, which is much faster than single calls. When it throws, some
     * commands may have been sent. Inside a handler the commands are published after the commit.
     *
     * @param iterable<object> $commands may be a generator, which is read as fast as the broker accepts messages
     * @return int number of sent commands
     *
     * @throws UnroutableMessageException|PublishException|MessageEncodingException
     */
    public function sendAll(iterable $commands, ?SendOptions $options = null): int
    {
        return $this->sender->many(MessageKind::Command, $commands, $options);
    }

    /**
     * Publishes many events, see {@see sendAll()}.
     *
     * @param iterable<object> $events
     * @return int number of published events
     *
     * @throws PublishException|MessageEncodingException
     */
    public function publishAll(iterable $events, ?SendOptions $options = null): int
    {
        return $this->sender->many(MessageKind::Event, $events, $options);
    }

    /**
     * Sends a message to its {@see QueryHandler} or {@see CommandHandler} and waits for the value that the handler returns: a message
     * object, null, a scalar, or arrays of scalars and arrays. Any number of tasks may wait at the same time.
     *
     * The message is published immediately, also inside a handler, and expires with the timeout. A command is otherwise handled like any
     * other, with retries and dead letters. Replies are not stored: a crash may lose one, which ends in a timeout.
     *
     * @param class-string|null $reply   class of the reply, which is then of this class or null; needed if neither a handler nor
     *                                   {@see MessageOptions::$classes} names it
     * @param float             $timeout seconds for publishing, handling and the reply, above 0 and at most 1,000,000,000. Cancelling the
     *                                   wait leaves nothing behind; a late reply is discarded
     *
     * @throws RequestTimeoutException
     * @throws RequestFailedException when the handler has failed for good, or the reply is of another class
     * @throws UnroutableMessageException|PublishException|MessageEncodingException
     */
    public function request(object $message, ?string $reply = null, float $timeout = 30.0): mixed
    {
        if (\is_nan($timeout) || $timeout <= 0.0 || $timeout > 1e9) {
            throw new \ValueError('The timeout of a request must be above 0 and at most 1,000,000,000 seconds, got ' . Number::text($timeout));
        }
        $reply === null || $this->setup->codec->of($reply);

        return $this->requests->ask($message, $reply, $timeout);
    }

    /**
     * Cancels a delayed message; in a handler with a Transaction as part of it.
     *
     * @param string      $id     as {@see send()} returned it
     * @param string|null $reason publishes {@see DelayedMessageCancelled} afterwards; a crash in between loses the event. Null for none
     * @return bool false when no message with this id is waiting: it is unknown, already cancelled or already published
     */
    public function cancel(string $id, ?string $reason = null): bool
    {
        return $this->sender->cancel($id, $reason);
    }

    /**
     * Sends a command at recurring times while any process with the same database and this schedule consumes. Each time yields one
     * command, however many processes there are and also while they know different rules for the schedule. Times missed while no process
     * was running yield one command in all. A time skipped by a change of the clocks fires right after it; a repeated time fires once.
     *
     * Name and command type identify a schedule: services with one database may use the same name for different commands.
     *
     * @param string            $name    the same in every process; 1 to 200 bytes of UTF-8 without NUL
     * @param string            $cron    minute, hour, day, month and weekday as in a crontab, or `@daily` and the like
     * @param \Closure(): object $command creates the command for each time. It is called once more for its class
     *                                   unless it declares one as return type; with `object` the name alone is the schedule
     *
     * @throws \ValueError when the name or the rule is invalid, the bus has a schedule of this name, or the rule never fires
     */
    public function schedule(string $name, string $cron, \Closure $command, \DateTimeZone $zone = new \DateTimeZone('UTC')): static
    {
        Identifier::check('The name of a schedule', $name, 200);
        $this->setup->persistence ?? throw new \Error("The schedule \"{$name}\" needs a database: pass one to Bus::connect()");
        $this->setup->persistence->schedules->add($name, new Cron($cron, $zone), $command);

        return $this;
    }

    /**
     * Declares the queue and handles its messages until {@see stop()}, SIGTERM or SIGINT. Handlers in flight then finish and are
     * acknowledged; without a supervisor, a second signal cancels them and requeues their messages. Outside of `Weft\run()` the call
     * runs an event loop.
     *
     * A message whose handler throws is retried or moved to the dead-letter queue with the error. So is a message that cannot be decoded
     * or has no handler. Other messages are not affected.
     *
     * @param int<1, max>|null $concurrency handlers that run at the same time, each in its own task; at most 1,000,000; null adapts the
     *                                      number, between 2 and 100, to the observed latency
     *
     * @return int number of messages that were handled or dead-lettered
     *
     * @throws BrokerConflictException when the database holds the messages of a bus on another broker
     * @throws TransportException      when the connection to the broker is lost for good
     * @throws UndefinedQueueException when the queue is deleted meanwhile, unless the transport declares it again
     */
    public function consume(string $queue, ?int $concurrency = null, ConsumeOptions $options = new ConsumeOptions()): int
    {
        return $this->receiver->consume($queue, WorkerOptions::of($concurrency, $options));
    }

    /**
     * Lets every running {@see consume()} finish its handlers in flight and return. The call does not wait for that.
     *
     * @param float|null $grace seconds until handlers in flight are cancelled and their messages requeued; null for that of {@see ConsumeOptions}.
     *                          The earliest of several applies
     */
    public function stop(?float $grace = null): void
    {
        $this->receiver->stop((new ConsumeOptions(grace: $grace))->grace);
    }

    /**
     * Closes the connections to the broker. Every running {@see consume()} is stopped first: handlers in flight are cancelled and
     * their messages are requeued.
     */
    public function close(): void
    {
        $this->receiver->abort();
        $this->requests->close();
        $this->setup->persistence?->broker->release();
        $this->setup->transport->close();
    }
}
