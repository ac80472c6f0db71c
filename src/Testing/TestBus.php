<?php

declare(strict_types=1);

namespace Weft\Testing;

use PHPUnit\Framework\Assert;
use Psr\Log\NullLogger;
use Weft\Bus\Bus;
use Weft\Bus\BusException;
use Weft\Bus\BusOptions;
use Weft\Bus\ConsumeOptions;
use Weft\Bus\DeadLetter;
use Weft\Bus\DeadLetterFilter;
use Weft\Bus\Header;
use Weft\Bus\Internal\Random;
use Weft\Bus\Internal\Clock;
use Weft\Bus\SendOptions;
use Weft\Bus\Transport\Memory;
use Weft\Bus\Transport\Outgoing;
use Weft\Internal\Number;
use Weft\Sql\Database;
use Weft\Testing\Internal\MessageReader;
use Weft\Testing\Internal\PhpUnit;
use Weft\Testing\Internal\SimulatedBroker;
use Weft\UsageError;

use function Weft\async;
use function Weft\current;
use function Weft\delay;
use function Weft\run;

/**
 * A bus for testing handlers: an in-memory broker with the rules of the real ones, an in-memory database, and a virtual clock.
 * It does not run in the background: {@see run()} and {@see advance()} handle messages one after the other until none is ready, so that
 * tests are deterministic.
 *
 * Handlers run as in production: transactions, inbox and outbox, retries, dead letters, sagas.
 *
 * One can be open at a time, because the whole process has its clock: {@see close()} it at the end of the test.
 */
final class TestBus
{
    private const QUEUE = 'test';

    /** Seconds of real time until a request fails. */
    private const REQUEST_TIMEOUT = 5.0;

    /** Messages handled by one call after which handlers are assumed to loop. */
    private const MAX_MESSAGES = 10_000;

    /** @var \WeakReference<self>|null whose clock and chance the process has */
    private static ?\WeakReference $open = null;

    public readonly Database $database;
    private readonly SimulatedBroker $broker;
    private readonly Memory $transport;
    private MessageReader $reader;
    private readonly bool $ownsDatabase;
    private ?Bus $bus = null;
    private BusOptions $options;

    /**
     * @param Faults                  $faults   what goes wrong, and how often; default: nothing
     * @param int                     $seed     any number; the same one repeats the same faults
     * @param Database|null           $database of the handlers; default: an empty SQLite database in memory
     * @param \DateTimeInterface|null $now      start of the clock; default: the beginning of 2026
     *
     * @throws UsageError PHPUnit is not installed, or another TestBus is open
     */
    public function __construct(Faults $faults = new Faults(), int $seed = 1, ?Database $database = null, ?\DateTimeInterface $now = null)
    {
        PhpUnit::require();
        if (self::$open?->get() !== null) {
            throw new UsageError('Another TestBus is open, and a process has one clock: call close() on it first, in tearDown() for instance');
        }
        $this->ownsDatabase = $database === null;
        $this->database = $database ?? Database::connect('sqlite::memory:');
        $this->broker = new SimulatedBroker($seed, $faults);
        $this->transport = new Memory($this->broker);
        $this->options = new BusOptions(logger: new NullLogger());
        $this->reader = new MessageReader($this->options);
        Clock::set((float) ($now ?? new \DateTimeImmutable('2026-01-01 00:00:00 UTC'))->format('U.u'));
        Random::override($this->broker->chance(...));
        self::$open = \WeakReference::create($this);
    }

    /**
     * Sets the options of the bus. Must be called first. Without a logger nothing is logged; {@see assertDeadLettered()} reports the
     * errors.
     *
     * @return $this
     */
    public function configure(BusOptions $options): static
    {
        if ($this->bus !== null) {
            throw new \Error('configure() must be called before the first use of a TestBus');
        }
        $this->options = $options->logger !== null ? $options : new BusOptions(...['logger' => new NullLogger()] + \get_object_vars($options));
        $this->reader = new MessageReader($this->options);

        return $this;
    }

    /**
     * Registers handlers and sagas, see {@see Bus::handlers()}.
     *
     * @return $this
     */
    public function handlers(object|string ...$services): static
    {
        $this->bus()->handlers(...$services);
        $this->bus()->queue(self::QUEUE)->declare();

        return $this;
    }

    /** The bus, for all other methods. */
    public function bus(): Bus
    {
        if ($this->bus === null) {
            $this->bus = Bus::connect($this->transport, $this->database, $this->options);
            $this->bus->queue(self::QUEUE)->declare();
        }

        return $this->bus;
    }

    /**
     * Sends a command and handles it and all messages that result from it.
     *
     * @return string the message id
     */
    public function send(object $command, ?SendOptions $options = null): string
    {
        $id = $this->bus()->send($command, $options);
        $this->run();

        return $id;
    }

    /**
     * Publishes an event and handles it and all messages that result from it.
     *
     * @return string the message id
     */
    public function publish(object $event, ?SendOptions $options = null): string
    {
        $id = $this->bus()->publish($event, $options);
        $this->run();

        return $id;
    }

    /**
     * Sends a request, handles it and all messages that result from it, and returns the reply, see {@see Bus::request()}.
     *
     * @param class-string|null $reply class of the reply, if it is not registered
     *
     * @throws \Weft\Bus\RequestFailedException
     * @throws \Weft\Bus\RequestTimeoutException after 5 seconds of real time without a reply
     */
    public function request(object $message, ?string $reply = null): mixed
    {
        if (current() === null) {
            return run(fn(): mixed => $this->request($message, $reply));
        }
        $asking = async(function () use ($message, $reply): array {
            try {
                return [$this->bus()->request($message, $reply, self::REQUEST_TIMEOUT), null];
            } catch (BusException $failed) {
                return [null, $failed];
            }
        });
        while (!$asking->isDone()) {
            $this->run();
            delay(0.001);
        }
        /** @var array{mixed, BusException|null} $outcome */
        $outcome = $asking->await();
        [$answer, $failed] = $outcome;

        return $failed === null ? $answer : throw $failed;
    }

    /** Handles ready messages until none is left. Delayed messages wait for {@see advance()}. */
    public function run(): void
    {
        $this->bus()->admin()->releaseDue();
        if ($this->transport->depth(self::QUEUE) === 0) {
            return;
        }
        $handled = $this->bus()->consume(self::QUEUE, concurrency: 1, options: new ConsumeOptions(prefetch: 10, stopWhenEmpty: true, limit: self::MAX_MESSAGES, signals: false));
        if ($handled === self::MAX_MESSAGES && $this->transport->depth(self::QUEUE) > 0) {
            Assert::fail(self::MAX_MESSAGES . " messages were handled and more are ready: handlers seem to loop. If they do not, call run() for each part of the messages. The last messages: {$this->last(5)}");
        }
    }

    /** Advances the clock. All that becomes due (delays, timeouts, schedules, retries) is handled in order and at its time. */
    public function advance(float $seconds): void
    {
        if (!($seconds >= 0.0 && \is_finite($seconds))) {
            throw new \ValueError('The clock can only be advanced by a finite time, got ' . Number::text($seconds) . ' seconds');
        }
        $this->run();
        $end = Clock::now() + $seconds;
        while (($due = $this->bus()->admin()->releaseDue()) !== null && $due <= $end) {
            Clock::set(\max($due, Clock::now()));
            $this->run();
        }
        Clock::set($end);
        $this->run();
    }

    /** The time of the virtual clock. */
    public function now(): \DateTimeImmutable
    {
        return \DateTimeImmutable::createFromFormat('U.u', \sprintf('%.6F', Clock::now())) ?: throw new \LogicException('no time');
    }

    /**
     * The messages of a class that were sent since the test began, by the test or by handlers that committed. Each message counts once,
     * however often it was delivered. Delayed messages count when they are due.
     *
     * @template T of object
     *
     * @param class-string<T> $class
     * @return MessageAssertions<T>
     */
    public function assertSent(string $class): MessageAssertions
    {
        $messages = [];
        foreach ($this->broker->published as $message) {
            $decoded = $this->reader->read($class, $message->type, $message->body, $message->headers);
            if ($decoded !== null) {
                // A message that is published again after a crash counts once.
                $messages[$message->headers[Header::MESSAGE_ID]] ??= $decoded;
            }
        }

        $left = $this->broker->published === [] ? 'No messages were sent.' : "Sent messages: {$this->last(20)}.";

        return new MessageAssertions($class, \array_values($messages), $this->letters() === [] ? $left : "{$left}\n{$this->describeLetters()}", 'sent');
    }

    /**
     * The messages of a class that are dead letters now.
     *
     * @template T of object
     *
     * @param class-string<T>              $class
     * @param class-string<\Throwable>|null $because only messages that failed with this exception
     * @return MessageAssertions<T>
     */
    public function assertDeadLettered(string $class, ?string $because = null): MessageAssertions
    {
        $messages = [];
        foreach ($this->letters() as $letter) {
            $decoded = $because === null || \is_a($letter->errorClass(), $because, true) ? $this->reader->read($class, $letter->type, $letter->body, $letter->headers) : null;
            if ($decoded !== null) {
                $messages[] = $decoded;
            }
        }

        return new MessageAssertions($class . ($because === null ? '' : " with {$because}"), $messages, $this->describeLetters(), 'dead-lettered');
    }

    /**
     * Asserts that there is no dead letter.
     *
     * @return $this
     */
    public function assertNoDeadLetters(): static
    {
        Assert::assertSame(0, $this->bus()->queue(self::QUEUE)->deadLetters()->count(), $this->describeLetters());

        return $this;
    }

    /** Retries all dead letters, as `weft dead:retry` does. */
    public function retryDeadLetters(): void
    {
        $this->bus()->queue(self::QUEUE)->deadLetters()->retry();
        $this->run();
    }

    /** Ends the test and restores the real clock. */
    public function close(): void
    {
        if (self::$open?->get() === $this) {
            self::$open = null;
            Clock::set(null);
            Random::override(null);
        }
        $this->bus?->close();
        $this->ownsDatabase && $this->database->close();
    }

    /** @return list<DeadLetter> */
    private function letters(): array
    {
        return $this->bus()->queue(self::QUEUE)->deadLetters()->peek(self::MAX_MESSAGES, new DeadLetterFilter());
    }

    private function describeLetters(): string
    {
        $letters = \array_map(static fn(DeadLetter $letter): string => "{$letter->type}: {$letter->errorClass()}: {$letter->errorMessage()}", $this->letters());

        return $letters === [] ? 'There are no dead letters.' : "Dead letters:\n  " . \implode("\n  ", $letters);
    }

    private function last(int $count): string
    {
        return \implode(', ', \array_map(static fn(Outgoing $message): string => $message->type, \array_slice($this->broker->published, -$count)));
    }
}
