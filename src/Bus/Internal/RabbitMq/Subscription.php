<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\RabbitMq;

use Weft\Amqp\AmqpException;
use Weft\Amqp\ConnectionLostException;
use Weft\Native\AmqpConsumer;
use Weft\Runtime\Internal\Scheduler;
use Weft\Runtime\Internal\WaitsFor;
use Weft\Runtime\TimeoutException;

use function Weft\delay;
use function Weft\timeout;

/**
 * A native consumer and, after its queue was deleted, the next one. Delivery tags start again with each, so callers pass the number of the
 * consumer a delivery is from.
 *
 * @internal
 */
final class Subscription
{
    /** Seconds before a deleted queue is declared again, so that two conflicting programs do not keep the broker busy. */
    private const FIRST_PAUSE = 0.5;
    private const LONGEST_PAUSE = 10.0;

    /** Seconds after which a deletion counts as a new one. */
    private const PAUSE_RESET_AFTER = 60.0;

    /** Seconds to wait for the broker when closing: a silent broker must not keep a worker from ending. */
    private const CLOSE_TIMEOUT = 5.0;

    private ?AmqpConsumer $native = null;

    /** The number of the consumer, from 1. */
    public int $number = 0;

    private float $pause = self::FIRST_PAUSE;
    private float $openedAt = 0.0;

    /**
     * @param \Closure(): AmqpConsumer $consume
     * @param \Closure(): bool         $declare the queue again; false when it is not known how
     * @param bool $isStream whose deliveries cannot be given back
     */
    public function __construct(
        private readonly \Closure $consume,
        private readonly \Closure $declare,
        public readonly bool $isStream,
    ) {}

    /** @throws AmqpException */
    public function open(): void
    {
        $this->native = ($this->consume)();
        $this->number++;
        $this->openedAt = \hrtime(true) / 1e9;
    }

    /**
     * Declares a queue that was deleted and consumes again.
     *
     * @return bool false when it is not known how the queue is declared
     * @throws AmqpException|\Weft\Bus\BusException when the broker refuses
     */
    public function reopen(): bool
    {
        $this->pause = \hrtime(true) / 1e9 - $this->openedAt > self::PAUSE_RESET_AFTER ? self::FIRST_PAUSE : $this->pause;
        while (true) {
            delay($this->pause);
            $this->pause = \min(self::LONGEST_PAUSE, 2 * $this->pause);
            try {
                if (!($this->declare)()) {
                    return false;
                }
                $this->open();

                return true;
            } catch (AmqpException | \Weft\Bus\TransportException $exception) {
                if (!($exception instanceof ConnectionLostException || $exception->getPrevious() instanceof ConnectionLostException)) {
                    throw $exception;
                }
            }
        }
    }

    /**
     * @return int|list<array> deliveries as the extension makes them, or the operation that ends with some
     * @throws AmqpException
     */
    public function next(int $max): int|array
    {
        return $this->native()->next($max);
    }

    /** Does nothing for a delivery from before the queue was deleted or the connection was lost. */
    public function ack(int $tag, int $number): void
    {
        if ($number === $this->number) {
            $this->native()->ack($tag);
        }
    }

    /** See {@see ack()}. */
    public function giveBack(int $tag, int $number): void
    {
        if ($number === $this->number) {
            $this->native()->nack($tag, true);
        }
    }

    /**
     * An answer of the broker on the channel of the deliveries, behind those it has sent before.
     *
     * @throws AmqpException
     */
    #[WaitsFor('acknowledgements on their way to RabbitMQ')]
    public function roundTrip(): void
    {
        Scheduler::await($this->native()->flush());
    }

    /** @throws AmqpException|TimeoutException */
    #[WaitsFor('RabbitMQ to cancel a consumer')]
    public function cancel(): void
    {
        timeout(self::CLOSE_TIMEOUT, fn() => Scheduler::await($this->native()->cancel()));
    }

    /** @throws AmqpException|TimeoutException */
    #[WaitsFor('a channel of RabbitMQ to close')]
    public function close(): void
    {
        timeout(self::CLOSE_TIMEOUT, fn() => Scheduler::await($this->native()->close()));
    }

    private function native(): AmqpConsumer
    {
        \assert($this->native !== null);

        return $this->native;
    }
}
