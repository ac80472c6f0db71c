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
 * Sends commands to the one handler each has, publishes events to whoever listens, and runs the handlers of a queue.
 *
 * Messages are plain objects; handlers are marked methods of plain objects, see {@see CommandHandler} and
 * {@see EventListener}. Delivery is at least once.
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
     * @param string|Transport        $transport `amqp://user:password@host:5672/vhost`, `amqps://…`,
     *                                           `postgres://user:password@host:5432/database`, `sqlite:path.db`,
     *                                           `memory:`, or a transport with options of its own
     * @param Database|null           $database  where handlers with a Transaction parameter run theirs, and where is
     *                                           noted what was handled and sent; when the messages are in the same
     *                                           PostgreSQL database or SQLite file, they commit together with them
     * @param DeliveryGuarantee              $guarantee when what handlers publish leaves
     * @param Retry                   $retry     how messages are tried again whose failure may pass by itself
     * @param InboxOptions               $inbox how long is remembered what was handled
     * @param float|null              $timeout   most seconds of a handler without a {@see Timeout} of its own; null for no limit
     * @param LoggerInterface|null    $logger    told of every failure and of connections; by default lines on stderr
     * @param Validator|null          $validator of messages whose handlers ask for it, see {@see Validate}; null for symfony/validator
     * @param ClaimCheck|null         $claims    where large bodies are kept
     * @param KeyRing|null            $keys      for properties marked {@see Encrypted}
     * @param ContainerInterface|null $container provides further parameters of handlers, by type
     *
     * @throws \ValueError     when the DSN is none, or the time-out not above 0
     * @throws TransportFailed when the broker cannot be reached
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

        return new self(new Setup($transport, $database, $guarantee, $container, $logger ?? StreamLogger::ofEnvironment(), $observer, $retry, $inbox, $timeout, $validator, $claims, $keys));
    }

    /**
     * Registers every marked method of the objects, and of saga classes, which are given by their names, see {@see Saga\Saga}.
     *
     * @throws InvalidHandler      when a method cannot be a handler, or a class no saga; names it and the parameter
     * @throws DuplicateHandler    when a command would have two handlers; names both
     * @throws InvalidMessageClass when a message cannot be coded; names the property
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

    /**
     * Runs these around every handler, those registered later too: the first is the outermost. See {@see Middleware} for where
     * they stand; without any a message pays nothing.
     */
    public function middleware(Middleware ...$middlewares): static
    {
        $this->setup->handlers->surround(...$middlewares);

        return $this;
    }

    /**
     * Registers every method marked with {@see Upcaster} of the objects.
     *
     * @throws InvalidUpcaster when a method cannot be one, or takes a version that another one takes or that is not an old one
     */
    public function upcasters(object ...$services): static
    {
        \array_walk($services, $this->setup->decoder->upcasters->add(...));

        return $this;
    }

    /**
     * Compares the message classes of the handlers and of {@see registerMessages()} with a lock file, as `weft schema:check` does.
     *
     * @param string|null $lock contents of the file; null compares with nothing
     *
     * @throws \ValueError when it is no such file
     */
    public function compareSchema(?string $lock): SchemaChange
    {
        $now = Schema::of($this->setup->codec, $this->setup->decoder->upcasters);
        $comparison = new Comparison($lock === null ? $now : Schema::parse($lock), $now);

        return new SchemaChange($comparison->breaking, $comparison->compatible, $now->json());
    }

    /**
     * Makes message classes known that have no handler here: their events are acknowledged instead of parked as unknown,
     * and what JSON cannot carry is found now instead of when one is sent.
     *
     * @param class-string ...$classes
     * @throws InvalidMessageClass
     */
    public function registerMessages(string ...$classes): static
    {
        foreach ($classes as $class) {
            $this->setup->codec->of($class);
        }

        return $this;
    }

    /**
     * Makes the queue, its dead-letter queue and a binding for each message type that has a handler here, and with a database
     * the bus's own tables `weft_*`, where they are missing.
     *
     * @param string $queue 1 to 250 bytes of UTF-8 without NUL
     */
    public function declare(string $queue): void
    {
        $this->receiver->declare($queue);
    }

    /**
     * What {@see declare()} would make or find there already.
     *
     * @return list<string> a line each
     */
    public function plan(string $queue): array
    {
        return $this->receiver->plan($queue);
    }

    /**
     * Sends a command; returns when the broker has it. Inside a handler it is {@see Context::send()}: it leaves when the
     * handler's effects are certain.
     *
     * A message that is to leave later waits in the database and returns when it is safe there. Workers of any process that
     * consume with the same database send it when it is due, about 0.25 seconds later at most; without one it waits until
     * there is one. The time is the wall clock's.
     *
     * @param float|null              $delay seconds before it leaves, to the millisecond
     * @param \DateTimeInterface|null $at    when it leaves, instead of a delay; a time that is over means now
     * @param int<0, 9>|null          $priority see {@see Priority}
     * @param float|null              $expires  seconds from when it leaves after which nobody needs it, see {@see Expires}
     * @param array<string, string>   $headers  of the application; names that begin with `weft-` are the bus's
     * @return string the message's id, for {@see cancel()}
     *
     * @throws UnroutableMessage     when no queue is declared for it; not when it leaves later, then it waits for one
     * @throws PublishFailed         when the broker refused it or cannot be reached
     * @throws MessageEncodingFailed
     * @throws \Weft\Sql\SqlException when it is to leave later and cannot be stored
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
     * Publishes an event; returns when the broker has it. Inside a handler it is {@see Context::publish()}: it leaves
     * when the handler's effects are certain. The other parameters are those of {@see send()}.
     *
     * @param array<string, string> $headers
     * @return string the message's id
     *
     * @throws PublishFailed         when the broker refused it or cannot be reached
     * @throws MessageEncodingFailed
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
     * Sends a message to its one handler, a {@see QueryHandler} or a {@see CommandHandler}, and waits for what it returns: a
     * message object, null, a scalar, or arrays of them. Any number of tasks may ask at a time.
     *
     * It leaves at once, inside of a handler too, and is not handled any more when the time is over. A command is handled as
     * one that was sent, its retries and dead letters included; a reply is not kept, so one that a crash loses is a time-out.
     *
     * @param class-string|null $reply   class of the reply; only needed where nothing else has made it known to the bus
     * @param float             $timeout seconds. A wait that is cancelled leaves nothing behind either; later replies are ignored
     *
     * @throws RequestTimedOut
     * @throws RequestFailed when the handler has failed for good
     * @throws UnroutableMessage|PublishFailed|MessageEncodingFailed
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
     * Takes back a message that was to leave later.
     *
     * @param string $id as {@see send()} returned it
     * @return bool false when nothing of that id waits: it was never there, was cancelled before, or has left
     */
    public function cancel(string $id): bool
    {
        return $this->sender->cancel($id);
    }

    /**
     * Has a command sent again and again while any bus with the same database and this schedule consumes: once each time,
     * however many there are, and also while some of them have another rule for it. Times at which none was there are made up
     * for by one command. A fixed time that a change of the clocks leaves out comes right after it, one that comes twice counts once.
     *
     * @param string            $name    of the schedule, the same everywhere; 1 to 200 bytes
     * @param string            $cron    minute, hour, day, month and weekday as in a crontab, or `@daily` and the like
     * @param \Closure(): object $command makes the command of each time
     *
     * @throws \ValueError when it is no such rule or one that never comes
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
     * Forgets what was handled longer ago than the {@see InboxOptions} says, and bodies that were kept for longer than the
     * {@see ClaimCheck} says. While a bus with a database consumes, the first happens by itself.
     *
     * @return int rows and bodies deleted
     */
    public function prune(): int
    {
        $this->setup->persistence?->prepare();

        return ($this->setup->persistence?->maintenance->prune() ?? 0) + $this->setup->claims->prune();
    }

    /**
     * Sends what handlers have sent and crashes have kept from leaving, everything at once. While a bus consumes, that
     * happens by itself.
     *
     * @return int how many messages; they may arrive twice, under the same ids
     */
    public function flushOutbox(): int
    {
        $this->setup->persistence?->prepare();

        return $this->setup->persistence?->relay->all() ?? 0;
    }

    /**
     * Sends many commands in order, without waiting for each: far faster than one by one. When it throws, some may have
     * been sent. Inside a handler they are kept until its effects are certain.
     *
     * @param iterable<object> $commands  may be a generator; it is read as fast as the broker takes
     * @param bool             $confirmed whether to return only when the broker has them all; without, some may be lost
     *                                    with the connection, and one without a queue is not reported
     * @return int how many were sent
     *
     * @throws UnroutableMessage|PublishFailed|MessageEncodingFailed
     */
    public function sendAll(iterable $commands, bool $confirmed = true): int
    {
        return $this->sender->many(MessageKind::Command, $commands, $confirmed);
    }

    /**
     * Publishes many events, as {@see sendAll()} sends commands.
     *
     * @param iterable<object> $events
     * @return int how many were published
     *
     * @throws PublishFailed|MessageEncodingFailed
     */
    public function publishAll(iterable $events, bool $confirmed = true): int
    {
        return $this->sender->many(MessageKind::Event, $events, $confirmed);
    }

    /**
     * Declares the queue and handles its messages until {@see stop()}, SIGTERM or SIGINT; then what is in flight is
     * finished and acknowledged. A second signal cancels what is in flight; its messages go back to the queue.
     * Outside of `Weft\run()` it runs one.
     *
     * A message whose handler throws is parked in the dead-letter queue with the error, and so is one that cannot be
     * decoded or that nobody handles; the others go on.
     *
     * @param int<1, max>|null $concurrency   handlers running at once, each in a task of its own; null for as many as do not
     *                                        make each other slower, 2 to 100
     * @param int<1, max>|null $prefetch      deliveries taken from the broker and not acknowledged; default twice the
     *                                        concurrency (200 where that is null); at most 65,535 where messages are in order
     * @param bool             $stopWhenEmpty returns once the queue is empty and nothing is in flight
     * @param int<1, max>|null $limit         returns once this many messages have been handled
     * @param bool             $signals       whether SIGTERM and SIGINT stop it
     * @param CircuitBreaker|null $breaker    when to stop for a while because everything fails
     * @param float|null       $grace         seconds that what is in flight may take after the first signal or {@see stop()};
     *                                        then it is cancelled as by a second signal. Null for as long as it takes
     *
     * @return int how many messages were handled or parked
     *
     * @throws TransportFailed when the broker is lost for good
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
     * Sends what was put off and is due, as a consuming bus does by itself.
     *
     * @internal for the test kit
     *
     * @return float|null when the next may be due, by the bus's clock; null when nothing waits
     */
    public function releaseDue(): ?float
    {
        return $this->sender->releaseDue();
    }

    /**
     * Makes every running {@see consume()} finish what is in flight and return. It does not wait for that.
     *
     * @param float|null $grace seconds after which what is still in flight is cancelled and its messages go back to the queue;
     *                          null for what the `consume()` says. Of several the earliest counts
     */
    public function stop(?float $grace = null): void
    {
        ConsumeOptions::vetGrace($grace);
        $this->receiver->stop($grace);
    }

    /** A snapshot of what this bus has done. */
    public function stats(): BusStats
    {
        return clone $this->setup->stats;
    }

    /**
     * How many messages are ready in a queue; those being handled are not counted.
     *
     * @throws UndefinedQueue
     */
    public function depth(string $queue): int
    {
        return $this->setup->transport->depth($queue);
    }

    /**
     * Removes every message that is ready in a queue; those being handled stay.
     *
     * @return int how many were removed
     *
     * @throws UndefinedQueue
     */
    public function purge(string $queue): int
    {
        return $this->receiver->purge($queue);
    }

    /** @return array<string, int> what waits in the database: `outbox` to be sent, `put off` until it is due; empty without one */
    public function backlog(): array
    {
        $this->setup->persistence?->prepare();

        return $this->setup->persistence?->backlog() ?? [];
    }

    /**
     * Keys of messages that are in order ({@see OrderedBy}) and one of which has failed.
     *
     * @return list<BlockedKey> the longest blocked first
     */
    public function blockedKeys(string $queue): array
    {
        $this->setup->persistence?->prepare();

        return $this->setup->persistence?->keys->blocked($queue) ?? [];
    }

    /**
     * Goes on with a blocked key without the message that has failed: those that wait behind it are handled in order, within
     * about a second where the queue is consumed. To go on with it, give its dead letter back: {@see DeadLetters::retry()}.
     *
     * @return bool false when the key is not blocked
     */
    public function releaseKey(string $queue, string $key): bool
    {
        $this->setup->persistence?->prepare();

        return $this->setup->persistence?->keys->release($queue, $key) ?? false;
    }

    /** The sagas in the database, to look at, reopen and forget. */
    public function sagas(): Sagas
    {
        $this->setup->sagas->prepare(always: true);

        return new Sagas(
            $this->setup->sagas->store ?? throw new \Error('Sagas need a database: pass one to Bus::connect()'),
            $this->setup->sagas->definitions,
            $this->sender,
        );
    }

    /** The messages of a queue that could not be handled. */
    public function deadLetters(string $queue): DeadLetters
    {
        return new DeadLetters($this->setup->transport, $queue);
    }

    /**
     * Closes the connections to the broker. Every running {@see consume()} is told to stop at once and has returned before:
     * what is in flight is cancelled and goes back to its queue.
     */
    public function close(): void
    {
        $this->receiver->abort();
        $this->requests->close();
        $this->setup->transport->close();
    }
}
