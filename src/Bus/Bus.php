<?php

declare(strict_types=1);

namespace Weft\Bus;

use Psr\Container\ContainerInterface;
use Psr\Log\LoggerInterface;
use Psr\Log\NullLogger;
use Weft\Bus\Internal\Codec\Codec;
use Weft\Bus\Internal\Cron;
use Weft\Bus\Internal\Delays;
use Weft\Bus\Internal\Dispatcher;
use Weft\Bus\Internal\Dsn;
use Weft\Bus\Internal\Due;
use Weft\Bus\Internal\Envelopes;
use Weft\Bus\Internal\HandlerCompiler;
use Weft\Bus\Internal\Handlers;
use Weft\Bus\Internal\Handling;
use Weft\Bus\Internal\Invoker;
use Weft\Bus\Internal\Kind;
use Weft\Bus\Internal\Ledger\Ledger;
use Weft\Bus\Internal\Outage;
use Weft\Bus\Internal\RetryPolicy;
use Weft\Bus\Internal\Suspicion;
use Weft\Bus\Internal\Wakeup;
use Weft\Bus\Internal\Worker;
use Weft\Bus\Transport\Consumer;
use Weft\Bus\Transport\Memory;
use Weft\Bus\Transport\ReportingTransport;
use Weft\Bus\Transport\Sqlite;
use Weft\Bus\Transport\TransactionalConsumer;
use Weft\Runtime\CancelledException;
use Weft\Runtime\Local;
use Weft\Runtime\Task;
use Weft\Sql\Database;

use function Weft\current;
use function Weft\detach;
use function Weft\run;
use function Weft\shield;

/**
 * Sends commands to the one handler each has, publishes events to whoever listens, and runs the handlers of a queue.
 *
 * Messages are plain objects; handlers are marked methods of plain objects, see {@see CommandHandler} and
 * {@see EventListener}. Delivery is at least once.
 */
final class Bus
{
    /** Seconds without a message after which a queue counts as empty. */
    private const LINGER = 0.2;
    private const BATCH = 1000;
    private readonly Codec $codec;
    private readonly Envelopes $envelopes;
    private readonly Handlers $handlers;
    private readonly HandlerCompiler $compiler;
    private readonly Progress $progress;

    /** @var Local<Context|null> of the handler that runs in the current task */
    private readonly Local $current;

    /** @var array<int, Worker> */
    private array $workers = [];

    private readonly Wakeup $ended;

    /** Null without a database. */
    private readonly ?Ledger $ledger;

    private readonly ?Delays $delays;
    private readonly RetryPolicy $retries;

    /** Logs what happens to the transport's connections while something is consumed. */
    private ?Task $report = null;

    private function __construct(
        private readonly Transport $transport,
        private readonly ?Database $database,
        private readonly Publishing $publishing,
        ?ContainerInterface $container,
        private readonly LoggerInterface $logger,
        private readonly ?Observer $observer,
        Retry $retry,
        Recording $recording,
    ) {
        $this->codec = new Codec();
        $this->envelopes = new Envelopes($this->codec);
        $this->handlers = new Handlers();
        $this->compiler = new HandlerCompiler($this->codec, $database, $container, $logger);
        $this->progress = new Progress();
        $this->current = new Local();
        $this->ended = new Wakeup('the end of what the bus consumes');
        $this->retries = new RetryPolicy($retry);
        $ledgers = $database ?? ($transport instanceof Sqlite ? $transport->database() : null);
        $this->ledger = $ledgers === null ? null : new Ledger($ledgers, $transport, $this->envelopes, $recording, $logger);
        $this->delays = $this->ledger?->delayed ?? ($transport instanceof Memory ? $transport->delays() : null);
    }

    /**
     * @param string|Transport        $transport `amqp://user:password@host:5672/vhost`, `amqps://…`, `sqlite:path.db`,
     *                                           `memory:`, or a transport with options of its own
     * @param Database|null           $database  where handlers with a Transaction parameter run theirs, and where is
     *                                           noted what was handled and sent; when an SQLite transport names the same
     *                                           file, messages commit together with them
     * @param Publishing              $publishing when what handlers publish leaves
     * @param Retry                   $retry     how messages are tried again whose failure may pass by itself
     * @param Recording               $recording how long is remembered what was handled
     * @param ContainerInterface|null $container provides further parameters of handlers, by type
     *
     * @throws \ValueError     when the DSN is none
     * @throws TransportFailed when the broker cannot be reached
     */
    public static function connect(
        string|Transport $transport,
        ?Database $database = null,
        Publishing $publishing = Publishing::Recorded,
        ?ContainerInterface $container = null,
        ?LoggerInterface $logger = null,
        ?Observer $observer = null,
        Retry $retry = new Retry(immediate: 3, delayed: 5),
        Recording $recording = new Recording(),
    ): self {
        $transport = \is_string($transport) ? Dsn::connect($transport, $database) : $transport;

        return new self($transport, $database, $publishing, $container, $logger ?? new NullLogger(), $observer, $retry, $recording);
    }

    /**
     * Registers every marked method of the objects.
     *
     * @throws InvalidHandler      when a method cannot be a handler; names it and the parameter
     * @throws DuplicateHandler    when a command would have two handlers; names both
     * @throws InvalidMessageClass when a message cannot be coded; names the property
     */
    public function handlers(object ...$services): static
    {
        foreach ($services as $service) {
            foreach ($this->compiler->compile($service) as $handler) {
                $this->handlers->add($handler);
            }
        }

        return $this;
    }

    /**
     * Makes message classes known that have no handler here: their events are acknowledged instead of parked as unknown,
     * and what JSON cannot carry is found now instead of when one is sent.
     *
     * @param class-string ...$classes
     * @throws InvalidMessageClass
     */
    public function messages(string ...$classes): static
    {
        foreach ($classes as $class) {
            $this->codec->of($class);
        }

        return $this;
    }

    /**
     * Makes the queue, its dead-letter queue and a binding for each message type that has a handler here, and with a database
     * the bus's own tables `weft_*`, where they are missing.
     *
     * @param string $queue 1 to 250 bytes of UTF-8
     */
    public function declare(string $queue): void
    {
        if ($queue === '' || \strlen($queue) > 250 || \preg_match('//u', $queue) !== 1) {
            throw new \ValueError('The name of a queue has 1 to 250 bytes of UTF-8, got "' . \mb_scrub($queue, 'UTF-8') . '" of ' . \strlen($queue));
        }
        $this->transport->declare($queue, $this->handlers->types());
        $this->ledger?->prepare();
    }

    /**
     * What {@see declare()} would make or find there already.
     *
     * @return list<string> a line each
     */
    public function plan(string $queue): array
    {
        $steps = ["queue {$queue}", 'queue ' . DeadLetters::queueOf($queue)];
        foreach ($this->handlers->types() as $type) {
            $steps[] = "binding of {$type} to {$queue}";
        }
        foreach ($this->ledger?->missing() ?? [] as $table) {
            $steps[] = "table {$table}";
        }

        return $steps;
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
     * @return string the message's id, for {@see cancel()}
     *
     * @throws UnroutableMessage     when no queue is declared for it; not when it leaves later, then it waits for one
     * @throws PublishFailed         when the broker refused it or cannot be reached
     * @throws MessageEncodingFailed
     * @throws \Weft\Sql\SqlException when it is to leave later and cannot be stored
     */
    public function send(object $command, ?float $delay = null, ?\DateTimeInterface $at = null): string
    {
        return $this->dispatchOne(Kind::Command, $command, Due::of($delay, $at));
    }

    /**
     * Publishes an event; returns when the broker has it. Inside a handler it is {@see Context::publish()}: it leaves
     * when the handler's effects are certain. With a delay or a time as {@see send()}.
     *
     * @return string the message's id
     *
     * @throws PublishFailed         when the broker refused it or cannot be reached
     * @throws MessageEncodingFailed
     */
    public function publish(object $event, ?float $delay = null, ?\DateTimeInterface $at = null): string
    {
        return $this->dispatchOne(Kind::Event, $event, Due::of($delay, $at));
    }

    /**
     * Takes back a message that was to leave later.
     *
     * @param string $id as {@see send()} returned it
     * @return bool false when nothing of that id waits: it was never there, was cancelled before, or has left
     */
    public function cancel(string $id): bool
    {
        $this->ledger?->prepare();

        return $this->delays?->cancel($id) ?? false;
    }

    /**
     * Has a command sent again and again while any bus with the same database and this schedule consumes: once each time,
     * however many there are. Times at which none was there are made up for by one command.
     *
     * @param string            $name    of the schedule, the same everywhere; 1 to 200 bytes
     * @param string            $cron    minute, hour, day, month and weekday as in a crontab
     * @param \Closure(): object $command makes the command of each time
     *
     * @throws \ValueError when it is no such rule or one that never comes
     */
    public function schedule(string $name, string $cron, \Closure $command, \DateTimeZone $zone = new \DateTimeZone('UTC')): static
    {
        if ($name === '' || \strlen($name) > 200) {
            throw new \ValueError("The name of a schedule has 1 to 200 bytes, \"{$name}\" has " . \strlen($name));
        }
        $this->ledger ?? throw new \Error("The schedule \"{$name}\" needs a database that says whose turn it is: give Bus::connect() one");
        $this->ledger->schedules->add($name, new Cron($cron, $zone), $command);

        return $this;
    }

    /**
     * Forgets what was handled longer ago than the {@see Recording} says. While a bus consumes, that happens by itself.
     *
     * @return int rows deleted
     */
    public function forget(): int
    {
        $this->ledger?->prepare();

        return $this->ledger?->caretaker->forget() ?? 0;
    }

    /**
     * Sends what handlers have sent and crashes have kept from leaving, everything at once. While a bus consumes, that
     * happens by itself.
     *
     * @return int how many messages; they may arrive twice, under the same ids
     */
    public function relay(): int
    {
        $this->ledger?->prepare();

        return $this->ledger?->relay->all() ?? 0;
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
        return $this->dispatch(Kind::Command, $commands, $confirmed);
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
        return $this->dispatch(Kind::Event, $events, $confirmed);
    }

    /**
     * Declares the queue and handles its messages until {@see stop()}, SIGTERM or SIGINT; then what is in flight is
     * finished and acknowledged. A second signal cancels what is in flight; its messages go back to the queue.
     * Outside of `Weft\run()` it runs one.
     *
     * A message whose handler throws is parked in the dead-letter queue with the error, and so is one that cannot be
     * decoded or that nobody handles; the others go on.
     *
     * @param int<1, max>      $concurrency   handlers running at once, each in a task of its own
     * @param int<1, max>|null $prefetch      deliveries taken from the broker and not acknowledged; default twice the
     *                                        concurrency, RabbitMQ takes up to 65,535
     * @param bool             $stopWhenEmpty returns once the queue is empty and nothing is in flight
     * @param int<1, max>|null $limit         returns once this many messages have been handled
     * @param bool             $signals       whether SIGTERM and SIGINT stop it
     *
     * @return int how many messages were handled or parked
     *
     * @throws TransportFailed when the broker is lost for good
     */
    public function consume(
        string $queue,
        int $concurrency = 100,
        ?int $prefetch = null,
        bool $stopWhenEmpty = false,
        ?int $limit = null,
        bool $signals = true,
    ): int {
        $prefetch ??= 2 * $concurrency;
        if ($concurrency < 1 || $prefetch < 1 || ($limit ?? 1) < 1) {
            throw new \ValueError("concurrency, prefetch and limit must be at least 1, got {$concurrency}, {$prefetch}" . ($limit === null ? '' : " and {$limit}"));
        }
        $run = fn(): int => $this->work($queue, $concurrency, $prefetch, $stopWhenEmpty, $limit, $signals);

        return current() === null ? run($run) : $run();
    }

    /** Makes every running {@see consume()} finish what is in flight and return. */
    public function stop(): void
    {
        foreach ($this->workers as $worker) {
            $worker->stop();
        }
    }

    /** A snapshot of what this bus has done. */
    public function progress(): Progress
    {
        return clone $this->progress;
    }

    /**
     * How many messages are ready in a queue; those being handled are not counted.
     *
     * @throws UndefinedQueue
     */
    public function depth(string $queue): int
    {
        return $this->transport->depth($queue);
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
        $consumer = $this->transport->consume($queue, self::BATCH);
        $removed = 0;
        try {
            while (($deliveries = $consumer->next(self::BATCH, wait: self::LINGER)) !== []) {
                foreach ($deliveries as $delivery) {
                    $consumer->ack($delivery);
                    ++$removed;
                }
            }
        } finally {
            $consumer->close();
        }

        return $removed;
    }

    /** @return array<string, int> what waits in the database: `outbox` to be sent, `put off` until it is due; empty without one */
    public function backlog(): array
    {
        $this->ledger?->prepare();

        return $this->ledger?->backlog() ?? [];
    }

    /** The messages of a queue that could not be handled. */
    public function deadLetters(string $queue): DeadLetters
    {
        return new DeadLetters($this->transport, $queue);
    }

    /**
     * Closes the connections to the broker. Every running {@see consume()} is told to stop at once and has returned before:
     * what is in flight is cancelled and goes back to its queue.
     */
    public function close(): void
    {
        foreach ($this->workers as $worker) {
            $worker->abort();
        }
        while ($this->workers !== []) {
            $this->ended->wait();
        }
        $this->transport->close();
    }

    private function work(string $queue, int $concurrency, int $prefetch, bool $stopWhenEmpty, ?int $limit, bool $signals): int
    {
        $this->declare($queue);
        $consumer = $this->transport->consume($queue, $prefetch);
        $worker = new Worker($consumer, $this->handlingOf($consumer, $queue), $this->transport, $queue, $concurrency, $prefetch, $limit);
        $this->workers[\spl_object_id($worker)] = $worker;
        $this->ledger?->caretaker->start();
        if ($this->transport instanceof ReportingTransport) {
            $this->report ??= detach($this->report(...), $this->transport);
        }
        try {
            return $worker->run($stopWhenEmpty, $signals);
        } finally {
            $this->ledger?->caretaker->stop();
            shield(fn() => $this->ledger?->flush());
            unset($this->workers[\spl_object_id($worker)]);
            if ($this->workers === []) {
                $this->report?->cancel('nothing is consumed any more');
                $this->report = null;
            }
            $this->ended->notify();
        }
    }

    private function report(ReportingTransport $transport): void
    {
        try {
            $transport->report($this->logger);
        } catch (CancelledException $cancelled) {
            throw $cancelled;
        } catch (\Throwable $thrown) {
            \error_log("Weft: the logger failed, connections are no longer logged: {$thrown->getMessage()}");
        }
    }

    /** @param iterable<object> $messages */
    private function dispatch(Kind $kind, iterable $messages, bool $confirmed): int
    {
        if ($this->handling() !== null) {
            return $this->dispatchEach($kind, $messages);
        }
        $sent = 0;
        $wrapped = function () use ($kind, $messages, &$sent): iterable {
            foreach ($messages as $message) {
                yield $this->envelopes->wrap($kind, $message, null);
                $sent++;
                $this->progress->sent++;
            }
        };
        $this->transport->publish($wrapped(), $confirmed);

        return $sent;
    }

    /** @param iterable<object> $messages */
    private function dispatchEach(Kind $kind, iterable $messages): int
    {
        $sent = 0;
        foreach ($messages as $message) {
            $this->dispatchOne($kind, $message);
            $sent++;
        }

        return $sent;
    }

    private function dispatchOne(Kind $kind, object $message, ?float $due = null): string
    {
        $context = $this->handling();
        if ($context !== null) {
            return $context->add($kind, $message, $due);
        }
        $outgoing = $this->envelopes->wrap($kind, $message, null);
        if ($due === null) {
            $this->transport->publish([$outgoing]);
        } else {
            $this->ledger?->prepare();
            ($this->delays ?? throw Due::nowhere($message))->keep($outgoing, $due);
        }
        $this->progress->sent++;

        return $outgoing->headers[Header::MESSAGE_ID];
    }

    /** The context of the handler that called, directly or from a task it has started. */
    private function handling(): ?Context
    {
        $context = $this->current->value();

        return $context?->isOpen() === true ? $context : null;
    }

    private function handlingOf(Consumer $consumer, string $queue): Handling
    {
        $shared = $this->database !== null && $consumer instanceof TransactionalConsumer && $consumer->shares($this->database);
        $direct = $this->publishing === Publishing::BeforeCommitUnconfirmed && !$shared ? $this->transport : null;
        $ledger = $this->publishing === Publishing::Recorded && $this->database !== null ? $this->ledger : null;
        $outage = $this->database === null ? null : new Outage($this->database, $this->logger);
        $invoker = new Invoker($this->envelopes, $direct, $this->database, $ledger, $this->delays, $this->current, $this->progress, $this->logger, $queue);
        $dispatcher = new Dispatcher(
            $consumer,
            $shared ? $consumer : null,
            $this->transport,
            $this->handlers,
            $this->codec,
            $invoker,
            $this->retries,
            $outage,
            $ledger,
            $this->progress,
            $this->logger,
        );
        $suspicion = $ledger === null || $outage === null ? null : new Suspicion($ledger, $outage, $queue);

        $swaps = $consumer instanceof TransactionalConsumer && $this->ledger !== null && $consumer->shares($this->ledger->delayed->database);

        return new Handling($consumer, $queue, $dispatcher, $swaps ? $consumer : null, $suspicion, $this->delays, $this->progress, $this->logger, $this->observer);
    }
}
