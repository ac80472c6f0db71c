<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\RabbitMq;

use Weft\Amqp\AmqpException;
use Weft\Amqp\BrokerException;
use Weft\Bus\Header;
use Weft\Bus\Internal\Sending\DelayStore;
use Weft\Bus\NotCancellableException;
use Weft\Bus\PublishException;
use Weft\Bus\TopologyConflictException;
use Weft\Bus\Transport\Outgoing;
use Weft\Native\AmqpConnection;
use Weft\Runtime\Mutex;
use Weft\Runtime\Internal\Scheduler;
use Weft\Runtime\Internal\WaitsFor;
use Weft\Sql\Transaction;

use function Weft\shield;

/**
 * Delayed messages in queues of RabbitMQ, without a plugin.
 *
 * A delay is a multiple of {@see RESOLUTION}, written in octal. For each value of each digit there is a queue with that time to live. All
 * messages of a queue wait equally long, so none waits behind one with a longer delay, the flaw of a queue with mixed times to live. The
 * routing key consists of the digits, highest first, and the destination. A topic exchange matches one digit; a message that expires goes to
 * the exchange of the next lower digit. Binary digits would need fewer queues, but routing is the main cost for the broker, by words of the
 * key and by exchanges passed.
 *
 * @internal
 */
final class DelayQueues implements DelayStore
{
    /** Seconds. Delays are rounded up to it. */
    public const RESOLUTION = 0.032;

    /** Digits of the longest delay: 49 days, which is also about the longest time to live of RabbitMQ. */
    public const LEVELS = 9;

    private const BASE = 8;

    private const LONGEST = self::BASE ** self::LEVELS - 1;

    /**
     * Exchanges of messages whose delay is over; {@see bindings()} binds queues to the first. A message that must be routed and has no queue
     * by then goes to the queue of the second, where an operator finds it.
     */
    public const DUE_EXCHANGES = [
        ['name' => 'weft.due', 'kind' => 'topic', 'durable' => true, 'arguments' => ['alternate-exchange' => self::UNROUTED]],
        ['name' => self::UNROUTED, 'kind' => 'topic', 'durable' => true],
    ];

    private const DUE = 'weft.due';

    /** Also the name of its queue. */
    private const UNROUTED = 'weft.unrouted';

    private const PRECONDITION_FAILED = 406;

    /** Longest name of a queue that can follow `weft.retry.` */
    private const NAME_BYTES = 244;

    private bool $isDeclared = false;
    private readonly Mutex $turn;

    /** @param bool $isReplicated whether the queues are quorum queues, which hand a message on before they let go of it */
    public function __construct(
        private readonly AmqpConnection $connection,
        private readonly Publisher $publisher,
        private readonly bool $isReplicated,
    ) {
        $this->turn = new Mutex();
    }

    /**
     * The bindings by which a queue gets its retried messages and the delayed messages of its types.
     *
     * @param list<string> $types
     * @return list<array{exchange: string, queue: string, routingKey: string}>
     */
    public static function bindings(string $queue, array $types): array
    {
        $targets = [self::toQueue($queue), ...\array_map(self::toType(...), $types)];

        $bindings = [];
        foreach ($targets as $target) {
            $bindings[] = ['exchange' => self::DUE, 'queue' => $queue, 'routingKey' => "#.{$target}"];
        }

        return $bindings;
    }

    /**
     * A queue that forwards each message immediately to a foreign queue, which must not be bound.
     *
     * @return array{string, array<string, mixed>, list<array{exchange: string, queue: string, routingKey: string}>} name, arguments, bindings
     */
    public static function returning(string $queue): array
    {
        $name = \strlen($queue) <= self::NAME_BYTES ? "weft.retry.{$queue}" : 'weft.retry.' . \hash('xxh128', $queue);
        $arguments = ['x-queue-type' => 'classic', 'x-message-ttl' => 0, 'x-dead-letter-exchange' => '', 'x-dead-letter-routing-key' => $queue];

        return [$name, $arguments, [['exchange' => self::DUE, 'queue' => $name, 'routingKey' => '#.' . self::toQueue($queue)]]];
    }

    public function check(Outgoing $message, float $due, ?Transaction $transaction): void
    {
        if (isset($message->headers[Header::DELAY_ID])) {
            throw new \Error("A delayed message with an id of its own needs a database; {$message->type} cannot be stored: pass a Database to Bus::connect()");
        }
        if (isset($message->headers[Header::EXCHANGE])) {
            throw new \Error("A delayed message with a Route needs a database; {$message->type} cannot be stored: pass a Database to Bus::connect()");
        }
        $seconds = $due - \microtime(true);
        if (self::units($seconds) > self::LONGEST) {
            throw new \ValueError('Without a database a message can be delayed by at most ' . (int) (self::LONGEST * self::RESOLUTION) . " seconds, got {$seconds}");
        }
    }

    public function store(Outgoing $message, float $due): void
    {
        $this->check($message, $due, null);
        $this->enter($message, \min(self::units($due - \microtime(true)), self::LONGEST), ($message->mustRoute ? 'must.' : 'may.') . self::toType($message->type));
    }

    /** A longer delay is shortened to the longest: the message must not be lost, nor fail again at once. */
    public function storeRetry(Outgoing $message, string $queue, float $seconds): void
    {
        $this->enter($message, \min(self::units($seconds), self::LONGEST), 'must.' . self::toQueue($queue));
    }

    /** Always 0: the messages of all queues wait together. Those whose queue is gone by then go to the queue of unrouted messages. */
    public function retries(string $queue): int
    {
        return 0;
    }

    public function forgetRetries(string $queue): void {}

    /** @throws NotCancellableException always */
    public function cancel(string $messageId): bool
    {
        throw new NotCancellableException("Message {$messageId} cannot be cancelled: without a database delayed messages wait in queues of RabbitMQ. Pass a Database to Bus::connect()");
    }

    /** Multiples of the resolution; more than the longest delay for anything longer. */
    private static function units(float $seconds): int
    {
        return \max(1, (int) \ceil(\min($seconds / self::RESOLUTION, self::LONGEST + 1)));
    }

    private function enter(Outgoing $message, int $units, string $target): void
    {
        $digits = \decoct($units);
        $this->isDeclared || $this->turn->synchronized($this->declare(...));
        // It enters at its first non-zero digit.
        $key = \implode('.', \str_split(\str_pad($digits, self::LEVELS, '0', \STR_PAD_LEFT))) . ".{$target}";
        $this->publisher->publishVia(self::exchange(\strlen($digits) - 1), $key, $message);
    }

    /** Declares exchanges and queues, once. */
    #[WaitsFor('RabbitMQ to declare delay queues')]
    private function declare(): void
    {
        if ($this->isDeclared) {
            return;
        }
        $exchanges = self::DUE_EXCHANGES;
        $queues = [['name' => self::UNROUTED, 'durable' => true, 'arguments' => ['x-queue-type' => $this->isReplicated ? 'quorum' : 'classic']]];
        $bindings = [['exchange' => self::UNROUTED, 'queue' => self::UNROUTED, 'routingKey' => '#.must.*']];
        for ($level = 0; $level < self::LEVELS; $level++) {
            $name = self::exchange($level);
            $next = $level === 0 ? self::DUE : self::exchange($level - 1);
            $before = \str_repeat('*.', self::LEVELS - 1 - $level);
            $exchanges[] = ['name' => $name, 'kind' => 'topic', 'durable' => true];
            $bindings[] = ['exchange' => $name, 'toExchange' => $next, 'routingKey' => "{$before}0.#"];
            for ($digit = 1; $digit < self::BASE; $digit++) {
                $queues[] = ['name' => "{$name}.{$digit}", 'durable' => true, 'arguments' => $this->arguments($digit * self::BASE ** $level, $next)];
                $bindings[] = ['exchange' => $name, 'queue' => "{$name}.{$digit}", 'routingKey' => "{$before}{$digit}.#"];
            }
        }
        try {
            shield(fn() => Scheduler::await($this->connection->declare($exchanges, $queues, $bindings)));
        } catch (AmqpException $exception) {
            throw $exception instanceof BrokerException && $exception->getCode() === self::PRECONDITION_FAILED
                ? new TopologyConflictException("The delay queues exist with other arguments: {$exception->getMessage()}", $exception)
                : new PublishException("Cannot declare the delay queues: {$exception->getMessage()}", $exception);
        }
        $this->isDeclared = true;
    }

    /** @return array<string, mixed> */
    private function arguments(int $units, string $next): array
    {
        $arguments = ['x-message-ttl' => (int) (self::RESOLUTION * 1000) * $units, 'x-dead-letter-exchange' => $next];

        return $arguments + ($this->isReplicated
            ? ['x-queue-type' => 'quorum', 'x-dead-letter-strategy' => 'at-least-once', 'x-overflow' => 'reject-publish']
            : ['x-queue-type' => 'classic']);
    }

    private static function exchange(int $level): string
    {
        return "weft.delay.{$level}";
    }

    /** One word of a routing key, for types with any characters. */
    private static function toType(string $type): string
    {
        return 't' . \hash('xxh128', $type);
    }

    private static function toQueue(string $queue): string
    {
        return 'q' . \hash('xxh128', $queue);
    }
}
