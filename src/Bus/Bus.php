<?php

declare(strict_types=1);

namespace Weft\Bus;

use Psr\Container\ContainerInterface;
use Psr\Log\LoggerInterface;
use Weft\Bus\Internal\Consuming\ConsumeOptions;
use Weft\Bus\Internal\Cron;
use Weft\Bus\Internal\Dsn;
use Weft\Bus\Internal\Sending\Due;
use Weft\Bus\Internal\MessageKind;
use Weft\Bus\Internal\Sending\MessageHeaders;
use Weft\Bus\Internal\Consuming\Receiver;
use Weft\Bus\Internal\Requests\Requests;
use Weft\Bus\Internal\Schema\Comparison;
use Weft\Bus\Internal\Schema\Schema;
use Weft\Bus\Internal\Sending\Sender;
use Weft\Bus\Internal\Setup;
use Weft\Bus\Saga\Sagas;
use Weft\Log\StreamLogger;
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
     * @param string|Transport        $transport `amqp://user:password@host:5672/vhost`, `amqps://…`,
     *                                           `postgres://user:password@host:5432/database`, `sqlite:path.db`,
     *                                           `memory:`, or a transport with options of its own
     * @param Database|null           $database  runs the transactions of handlers and stores inbox, outbox, delayed messages and
     *                                           sagas. When the messages are in the same PostgreSQL database or SQLite file,
     *                                           effects and acknowledgements commit together
     * @param DeliveryGuarantee       $guarantee what a crash may lose or repeat; see its cases
     * @param Retry                   $retry     retries of failures that are marked {@see Recoverable} or known to be transient
     * @param InboxOptions            $inbox     how long handled messages are remembered
     * @param float|null              $timeout   seconds a handler without a {@see Timeout} may run; null for no limit
     * @param LoggerInterface|null    $logger    receives failures and connection events; default: lines on stderr
     * @param Validator|null          $validator validates messages whose handlers have {@see Validate}; null uses symfony/validator
     * @param ClaimCheck|null         $claims    stores large bodies outside the broker
     * @param KeyRing|null            $keys      encrypts properties marked {@see Encrypted}
     * @param ContainerInterface|null $container resolves further parameters of handlers by type
     *
     * @throws \ValueError     when the DSN is invalid or the timeout is not above 0
     * @throws TransportException when the broker cannot be reached
     */
    public static function connect(
        string|Transport $transport,
        ?Database $database = null,
        DeliveryGuarantee $guarantee = DeliveryGuarantee::Transactional,
        ?ContainerInterface $container = null,
        ?LoggerInterface $logger = null,
        ?Observer $observer = null,
        Retry $retry = new Retry(immediate: 3, delayed: 5),
        InboxOptions $inbox = new InboxOptions(),
        ?float $timeout = null,
        ?Validator $validator = null,
        ?ClaimCheck $claims = null,
        ?KeyRing $keys = null,
    ): self {
        $transport = \is_string($transport) ? Dsn::connect($transport, $database) : $transport;

        return new self(new Setup($transport, $database, $guarantee, $container, $logger ?? StreamLogger::fromEnvironment(), $observer, $retry, $inbox, $timeout, $validator, $claims, $keys));
    }

    /**
     * Registers every marked method of the objects. Saga classes are registered by class name, see {@see Saga\Saga}.
     *
     * @throws InvalidHandlerError      when a method cannot be a handler or a class cannot be a saga; names it and the parameter
     * @throws DuplicateHandlerError    when a command would have two handlers; names both
     * @throws InvalidMessageClassError when a message class cannot be encoded; names the property
     */
    public function handlers(object|string ...$services): static
    {
        foreach ($services as $service) {
            foreach (\is_string($service) ? $this->setup->sagas->compile($service) : $this->setup->compiler->compile($service) as $handler) {
                $this->setup->handlers->add($handler);
            }
        }

        return $this;
    }

    /** Adds middleware around every handler, including handlers registered later. The first middleware is the outermost one. */
    public function middleware(Middleware ...$middlewares): static
    {
        $this->setup->handlers->surround(...$middlewares);

        return $this;
    }

    /**
     * Registers every method marked with {@see Upcaster} of the objects.
     *
     * @throws InvalidUpcasterException when a method cannot be an upcaster, or its version is already registered or not older than the class
     */
    public function upcasters(object ...$services): static
    {
        \array_walk($services, $this->setup->decoder->upcasters->add(...));

        return $this;
    }

    /**
     * Compares the message classes of the handlers and of {@see registerMessages()} with a lock file, as `weft schema:check` does.
     *
     * @param string|null $lock contents of the file; null for no comparison
     *
     * @throws \ValueError when the contents are not a lock file
     */
    public function compareSchema(?string $lock): SchemaChange
    {
        $now = Schema::of($this->setup->codec, $this->setup->decoder->upcasters);
        $comparison = new Comparison($lock === null ? $now : Schema::parse($lock), $now);

        return new SchemaChange($comparison->breaking, $comparison->compatible, $now->json());
    }

    /**
     * Registers message classes that have no handler here. Their events are acknowledged instead of dead-lettered as unknown, and
     * properties that cannot be encoded are reported now instead of when a message is sent.
     *
     * @param class-string ...$classes
     * @throws InvalidMessageClassError
     */
    public function registerMessages(string ...$classes): static
    {
        foreach ($classes as $class) {
            $this->setup->codec->of($class);
        }

        return $this;
    }

    /**
     * Creates what is missing: the queue, its dead-letter queue, a binding for each message type that has a handler here, and with a
     * database the tables `weft_*`.
     *
     * @param string $queue 1 to 250 bytes of UTF-8 without NUL
     */
    public function declare(string $queue): void
    {
        $this->receiver->declare($queue);
    }

    /**
     * Lists what {@see declare()} would create or find.
     *
     * @return list<string> one line each
     */
    public function plan(string $queue): array
    {
        return $this->receiver->plan($queue);
    }

    /**
     * Sends a command and returns when the broker has confirmed it. Inside a handler it behaves as {@see Context::send()}: the command
     * is published after the handler's transaction has committed.
     *
     * A delayed command is stored in the database; the call returns when it is stored. Any process that consumes with the same database
     * publishes it when it is due, at most about 0.25 seconds late. Delays follow the wall clock.
     *
     * @param float|null              $delay    seconds until the command is published, rounded to milliseconds
     * @param \DateTimeInterface|null $at       when the command is published, instead of a delay; a past time means now
     * @param int<0, 9>|null          $priority see {@see Priority}
     * @param float|null              $expires  seconds after publishing until the message is dropped unhandled, see {@see Expires}
     * @param array<string, string>   $headers  of the application; names that begin with `weft-` are reserved
     * @return string the message id, for {@see cancel()}
     *
     * @throws UnroutableMessageException     when no queue is declared for the command; a delayed command waits for one instead
     * @throws PublishException         when the broker refuses the message or cannot be reached
     * @throws MessageEncodingException
     * @throws \Weft\Sql\SqlException when a delayed command cannot be stored
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

        return $this->sender->one(MessageKind::Command, $command, $due, MessageHeaders::headers($priority, $expires, $due, $headers));
    }

    /**
     * Publishes an event and returns when the broker has confirmed it. Inside a handler it behaves as {@see Context::publish()}: the
     * event is published after the handler's transaction has committed. For the parameters see {@see send()}.
     *
     * @param array<string, string> $headers
     * @return string the message id
     *
     * @throws PublishException         when the broker refuses the message or cannot be reached
     * @throws MessageEncodingException
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

        return $this->sender->one(MessageKind::Event, $event, $due, MessageHeaders::headers($priority, $expires, $due, $headers));
    }

    /**
     * Sends a message to its {@see QueryHandler} or {@see CommandHandler} and waits for the value that the handler returns: a message
     * object, null, a scalar, or arrays of these. Any number of tasks may wait at the same time.
     *
     * The message is published immediately, also inside a handler, and expires with the timeout. A command is otherwise handled like any
     * other, with retries and dead letters. Replies are not stored: a crash may lose one, which ends in a timeout.
     *
     * @param class-string|null $reply   class of the reply, if neither a handler nor {@see registerMessages()} has registered it
     * @param float             $timeout seconds for publishing, handling and the reply. Cancelling the wait leaves nothing behind;
     *                                   a late reply is discarded
     *
     * @throws RequestTimeoutException
     * @throws RequestFailedException when the handler has failed for good
     * @throws UnroutableMessageException|PublishException|MessageEncodingException
     */
    public function request(object $message, ?string $reply = null, float $timeout = 30.0): mixed
    {
        if (\is_nan($timeout) || $timeout <= 0.0 || $timeout > 1e9) {
            throw new \ValueError("The timeout of a request must be above 0 seconds, got {$timeout}");
        }
        $reply === null || $this->setup->codec->of($reply);

        return $this->requests->ask($message, $timeout);
    }

    /**
     * Cancels a delayed message.
     *
     * @param string $id as {@see send()} returned it
     * @return bool false when no message with this id is waiting: it is unknown, already cancelled or already published
     */
    public function cancel(string $id): bool
    {
        return $this->sender->cancel($id);
    }

    /**
     * Sends a command at recurring times while any process with the same database and this schedule consumes. Each time yields one
     * command, however many processes there are and also while they know different rules for the schedule. Times missed while no process
     * was running yield one command in all. A time skipped by a change of the clocks fires right after it; a repeated time fires once.
     *
     * @param string            $name    the same in every process; 1 to 200 bytes
     * @param string            $cron    minute, hour, day, month and weekday as in a crontab, or `@daily` and the like
     * @param \Closure(): object $command creates the command for each time
     *
     * @throws \ValueError when the rule is invalid or never fires
     */
    public function schedule(string $name, string $cron, \Closure $command, \DateTimeZone $zone = new \DateTimeZone('UTC')): static
    {
        if ($name === '' || \strlen($name) > 200) {
            throw new \ValueError("The name of a schedule must have 1 to 200 bytes, \"{$name}\" has " . \strlen($name));
        }
        $this->setup->persistence ?? throw new \Error("The schedule \"{$name}\" needs a database: pass one to Bus::connect()");
        $this->setup->persistence->schedules->add($name, new Cron($cron, $zone), $command);

        return $this;
    }

    /**
     * Deletes inbox rows older than {@see InboxOptions::$retention} and stored bodies older than {@see ClaimCheck::$retention}. A bus
     * that consumes deletes the inbox rows by itself.
     *
     * @return int number of deleted rows and bodies
     */
    public function prune(): int
    {
        $this->setup->persistence?->prepare();

        return ($this->setup->persistence?->maintenance->prune() ?? 0) + $this->setup->claims->prune();
    }

    /**
     * Publishes everything in the outbox immediately. A bus that consumes does so by itself, {@see InboxOptions::$relayAfter} seconds
     * after the commit.
     *
     * @return int number of published messages; they may be published twice, with the same ids
     */
    public function flushOutbox(): int
    {
        $this->setup->persistence?->prepare();

        return $this->setup->persistence?->relay->all() ?? 0;
    }

    /**
     * Sends many commands in order without waiting for each confirmation, which is much faster than single calls. When it throws, some
     * commands may have been sent. Inside a handler the commands are published after the commit.
     *
     * @param iterable<object> $commands  may be a generator, which is read as fast as the broker accepts messages
     * @param bool             $confirmed whether to wait for the broker's confirmation of every message. Without it a lost connection may
     *                                    lose messages, and unroutable messages are not reported
     * @return int number of sent commands
     *
     * @throws UnroutableMessageException|PublishException|MessageEncodingException
     */
    public function sendAll(iterable $commands, bool $confirmed = true): int
    {
        return $this->sender->many(MessageKind::Command, $commands, $confirmed);
    }

    /**
     * Publishes many events, see {@see sendAll()}.
     *
     * @param iterable<object> $events
     * @return int number of published events
     *
     * @throws PublishException|MessageEncodingException
     */
    public function publishAll(iterable $events, bool $confirmed = true): int
    {
        return $this->sender->many(MessageKind::Event, $events, $confirmed);
    }

    /**
     * Declares the queue and handles its messages until {@see stop()}, SIGTERM or SIGINT. Handlers in flight then finish and are
     * acknowledged; a second signal cancels them and requeues their messages. Outside of `Weft\run()` the call runs an event loop.
     *
     * A message whose handler throws is retried or moved to the dead-letter queue with the error. So is a message that cannot be decoded
     * or has no handler. Other messages are not affected.
     *
     * @param int<1, max>|null $concurrency   handlers that run at the same time, each in its own task; null adapts the number, between 2
     *                                        and 100, to the observed latency
     * @param int<1, max>|null $prefetch      unacknowledged deliveries; default: twice the concurrency (200 where that is null); at most
     *                                        65,535 for ordered messages
     * @param bool             $stopWhenEmpty returns when the queue is empty and no message is in flight
     * @param int<1, max>|null $limit         returns after this many messages
     * @param bool             $signals       whether SIGTERM and SIGINT stop it
     * @param CircuitBreaker|null $breaker    pauses the queue after consecutive failures
     * @param float|null       $grace         seconds that handlers in flight may run after the first signal or {@see stop()}; then they
     *                                        are cancelled as by a second signal. Null for no limit
     *
     * @return int number of messages that were handled or dead-lettered
     *
     * @throws TransportException when the connection to the broker is lost for good
     */
    public function consume(
        string $queue,
        ?int $concurrency = null,
        ?int $prefetch = null,
        bool $stopWhenEmpty = false,
        ?int $limit = null,
        bool $signals = true,
        ?CircuitBreaker $breaker = null,
        ?float $grace = null,
    ): int {
        return $this->receiver->consume($queue, new ConsumeOptions($concurrency, $prefetch, $stopWhenEmpty, $limit, $signals, $breaker, $grace));
    }

    /**
     * Publishes delayed messages that are due, as a consuming bus does by itself.
     *
     * @internal for {@see \Weft\Testing\TestBus}
     *
     * @return float|null when the next message may be due, by the bus's clock; null when none is waiting
     */
    public function releaseDue(): ?float
    {
        return $this->sender->releaseDue();
    }

    /**
     * Lets every running {@see consume()} finish its handlers in flight and return. The call does not wait for that.
     *
     * @param float|null $grace seconds until handlers in flight are cancelled and their messages requeued; null for the grace period of
     *                          `consume()`. The earliest of several applies
     */
    public function stop(?float $grace = null): void
    {
        ConsumeOptions::vetGrace($grace);
        $this->receiver->stop($grace);
    }

    /** A snapshot of the counters of this bus, in this process. */
    public function stats(): BusStats
    {
        return clone $this->setup->stats;
    }

    /**
     * The number of messages that are ready for delivery. Unacknowledged messages do not count.
     *
     * @throws UndefinedQueueException
     */
    public function depth(string $queue): int
    {
        return $this->setup->transport->depth($queue);
    }

    /**
     * Deletes every message that is ready for delivery. Unacknowledged messages stay.
     *
     * @return int number of deleted messages
     *
     * @throws UndefinedQueueException
     */
    public function purge(string $queue): int
    {
        return $this->receiver->purge($queue);
    }

    /** @return array<string, int> messages that wait in the database: in the `outbox`, and `delayed`; empty without a database */
    public function backlog(): array
    {
        $this->setup->persistence?->prepare();

        return $this->setup->persistence?->backlog() ?? [];
    }

    /**
     * The blocked keys of ordered messages ({@see OrderedBy}): those with a failed message.
     *
     * @return list<BlockedKey> the longest blocked first
     */
    public function blockedKeys(string $queue): array
    {
        $this->setup->persistence?->prepare();

        return $this->setup->persistence?->keys->blocked($queue) ?? [];
    }

    /**
     * Releases a blocked key without its failed message. The messages behind it are handled in order, within about a second when the
     * queue is consumed. To continue with the failed message use {@see DeadLetters::retry()}.
     *
     * @return bool false when the key is not blocked
     */
    public function releaseKey(string $queue, string $key): bool
    {
        $this->setup->persistence?->prepare();

        return $this->setup->persistence?->keys->release($queue, $key) ?? false;
    }

    /** Finds, reopens and deletes sagas. */
    public function sagas(): Sagas
    {
        $this->setup->sagas->prepare(always: true);

        return new Sagas(
            $this->setup->sagas->store ?? throw new \Error('Sagas need a database: pass one to Bus::connect()'),
            $this->setup->sagas->definitions,
            $this->sender,
        );
    }

    /** The dead letters of a queue. */
    public function deadLetters(string $queue): DeadLetters
    {
        return new DeadLetters($this->setup->transport, $queue);
    }

    /**
     * Closes the connections to the broker. Every running {@see consume()} is stopped first: handlers in flight are cancelled and
     * their messages are requeued.
     */
    public function close(): void
    {
        $this->receiver->abort();
        $this->requests->close();
        $this->setup->transport->close();
    }
}
