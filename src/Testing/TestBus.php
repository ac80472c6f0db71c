<?php

declare(strict_types=1);

namespace Weft\Testing;

use PHPUnit\Framework\Assert;
use Psr\Container\ContainerInterface;
use Psr\Log\LoggerInterface;
use Psr\Log\NullLogger;
use Weft\Bus\Bus;
use Weft\Bus\BusException;
use Weft\Bus\DeadLetter;
use Weft\Bus\DeadLetterFilter;
use Weft\Bus\Header;
use Weft\Bus\Internal\Random;
use Weft\Bus\Internal\Clock;
use Weft\Bus\Internal\Codec\Codec;
use Weft\Bus\Retry;
use Weft\Bus\Transport\Memory;
use Weft\Bus\Transport\Outgoing;
use Weft\Sql\Database;
use Weft\Testing\Internal\SimulatedBroker;

use function Weft\async;
use function Weft\current;
use function Weft\delay;
use function Weft\run;

/**
 * A bus to test handlers with: a broker in memory that keeps the rules of the real ones, a database in memory, and a clock that
 * only the test moves. Nothing runs in the background: {@see run()} and {@see advance()} handle messages one after the other
 * until none is ready, so a test does the same each time.
 *
 * Everything a handler sees is the bus as in production: transactions, inbox and outbox, retries, dead letters, sagas.
 */
final class TestBus
{
    private const QUEUE = 'test';

    /** Seconds of the real clock that an answer may take. */
    private const PATIENCE = 5.0;

    /** Messages handled by one call after which it is no test any more but a loop. */
    private const MOST = 10_000;

    public readonly Database $database;
    private readonly SimulatedBroker $broker;
    private readonly Memory $transport;
    private readonly Codec $codec;
    private readonly bool $ownsDatabase;
    private ?Bus $bus = null;
    private ?ContainerInterface $container = null;
    private Retry $retry;
    private LoggerInterface $logger;

    /**
     * @param int                     $seed     of the dice by which things go wrong
     * @param Database|null           $database of the handlers; default is an empty one of SQLite in memory
     * @param \DateTimeInterface|null $now      at which the clock stands; default is the beginning of 2026
     */
    public function __construct(Faults $faults = new Faults(), int $seed = 1, ?Database $database = null, ?\DateTimeInterface $now = null)
    {
        $this->ownsDatabase = $database === null;
        $this->database = $database ?? Database::connect('sqlite::memory:');
        $this->broker = new SimulatedBroker($seed, $faults);
        $this->transport = new Memory($this->broker);
        $this->codec = new Codec();
        $this->retry = new Retry(immediate: 3, delayed: 5);
        $this->logger = new NullLogger();
        Clock::set((float) ($now ?? new \DateTimeImmutable('2026-01-01 00:00:00 UTC'))->format('U.u'));
        Random::override($this->broker->chance(...));
    }

    /**
     * What {@see Bus::connect()} is given in production. To be called before everything else. Without a logger nothing is logged:
     * {@see assertDeadLettered()} has the errors.
     *
     * @return $this
     */
    public function configure(?ContainerInterface $container = null, ?Retry $retry = null, ?LoggerInterface $logger = null): static
    {
        if ($this->bus !== null) {
            throw new \Error('configure() must be called before the first use of a TestBus');
        }
        $this->container = $container;
        $this->retry = $retry ?? $this->retry;
        $this->logger = $logger ?? $this->logger;

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
        $this->bus()->declare(self::QUEUE);

        return $this;
    }

    /** The bus itself, for everything else. */
    public function bus(): Bus
    {
        if ($this->bus === null) {
            $this->bus = Bus::connect($this->transport, $this->database, container: $this->container, logger: $this->logger, retry: $this->retry);
            $this->bus->declare(self::QUEUE);
        }

        return $this->bus;
    }

    /**
     * Sends a command and handles everything that follows from it now.
     *
     * @param float|null $delay seconds of the test's clock
     * @return string the message's id
     */
    public function send(object $command, ?float $delay = null): string
    {
        $id = $this->bus()->send($command, $delay);
        $this->run();

        return $id;
    }

    /**
     * Publishes an event and handles everything that follows from it now.
     *
     * @param float|null $delay seconds of the test's clock
     * @return string the message's id
     */
    public function publish(object $event, ?float $delay = null): string
    {
        $id = $this->bus()->publish($event, $delay);
        $this->run();

        return $id;
    }

    /**
     * Sends a query, or a command that is answered, handles everything that follows from it now, and returns the reply: {@see Bus::request()}.
     *
     * @param class-string|null $reply class of the reply, where nothing else has made it known
     *
     * @throws \Weft\Bus\RequestFailed
     * @throws \Weft\Bus\RequestTimedOut after 5 seconds of the real clock: nobody has answered
     */
    public function request(object $message, ?string $reply = null): mixed
    {
        if (current() === null) {
            return run(fn(): mixed => $this->request($message, $reply));
        }
        $asking = async(function () use ($message, $reply): array {
            try {
                return [$this->bus()->request($message, $reply, self::PATIENCE), null];
            } catch (BusException $failed) {
                return [null, $failed];
            }
        });
        while (!$asking->done()) {
            $this->run();
            delay(0.001);
        }
        /** @var array{mixed, BusException|null} $outcome */
        $outcome = $asking->await();
        [$answer, $failed] = $outcome;

        return $failed === null ? $answer : throw $failed;
    }

    /** Handles what is ready, and what that leads to, until nothing is. What is to come later waits for {@see advance()}. */
    public function run(): void
    {
        $this->bus()->releaseDue();
        if ($this->transport->depth(self::QUEUE) === 0) {
            return;
        }
        $handled = $this->bus()->consume(self::QUEUE, concurrency: 1, prefetch: 10, stopWhenEmpty: true, limit: self::MOST, signals: false);
        Assert::assertLessThan(self::MOST, $handled, self::MOST . " messages were handled and more are ready, handlers seem to loop. The last messages: {$this->last(5)}");
    }

    /**
     * Moves the clock on. Whatever becomes due on the way (delays, time-outs, schedules, retries) is handled in its order and at its time.
     */
    public function advance(float $seconds): void
    {
        if (!($seconds >= 0.0)) {
            throw new \ValueError("The clock can only be advanced, got {$seconds} seconds");
        }
        $this->run();
        $end = Clock::now() + $seconds;
        while (($due = $this->bus()->releaseDue()) !== null && $due <= $end) {
            Clock::set(\max($due, Clock::now()));
            $this->run();
        }
        Clock::set($end);
        $this->run();
    }

    /** What the clock shows. */
    public function now(): \DateTimeImmutable
    {
        return \DateTimeImmutable::createFromFormat('U.u', \sprintf('%.6F', Clock::now())) ?: throw new \LogicException('no time');
    }

    /**
     * The messages of a class that have left since the test began, sent by it or by handlers that committed; each once, however often it
     * arrived. What waits for its time has not left yet.
     *
     * @template T of object
     *
     * @param class-string<T> $class
     * @return MessageAssertions<T>
     */
    public function assertSent(string $class): MessageAssertions
    {
        $known = $this->codec->of($class);
        $messages = [];
        foreach ($this->broker->published as $message) {
            if ($message->type === $known->type) {
                /** @var T $decoded */
                $decoded = $known->decode($message->body);
                // What is sent again after a crash is the same message.
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
     * @param class-string<\Throwable>|null $because only those that failed with this exception
     * @return MessageAssertions<T>
     */
    public function assertDeadLettered(string $class, ?string $because = null): MessageAssertions
    {
        $known = $this->codec->of($class);
        $messages = [];
        foreach ($this->letters() as $letter) {
            if ($letter->type === $known->type && ($because === null || \is_a($letter->errorClass(), $because, true))) {
                /** @var T $decoded */
                $decoded = $known->decode($letter->body);
                $messages[] = $decoded;
            }
        }

        return new MessageAssertions($class . ($because === null ? '' : " with {$because}"), $messages, $this->describeLetters(), 'dead-lettered');
    }

    /**
     * No message is a dead letter.
     *
     * @return $this
     */
    public function assertNoDeadLetters(): static
    {
        Assert::assertSame(0, $this->bus()->deadLetters(self::QUEUE)->count(), $this->describeLetters());

        return $this;
    }

    /** Handles the dead letters once more, as `weft dead:retry` does. */
    public function retryDeadLetters(): void
    {
        $this->bus()->deadLetters(self::QUEUE)->retry();
        $this->run();
    }

    /** Ends the test: the clock is the real one again. */
    public function close(): void
    {
        Clock::set(null);
        Random::override(null);
        $this->bus?->close();
        $this->ownsDatabase && $this->database->close();
    }

    /** @return list<DeadLetter> */
    private function letters(): array
    {
        return $this->bus()->deadLetters(self::QUEUE)->peek(self::MOST, new DeadLetterFilter());
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
