<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\RabbitMq;

use Weft\Amqp\AmqpException;
use Weft\Amqp\ConsumerCancelledException;
use Weft\UsageError;
use Weft\Bus\BusException;
use Weft\Bus\DeadLetters;
use Weft\Bus\Header;
use Weft\Bus\Internal\Clock;
use Weft\Bus\Internal\Consuming\RemoteConsumer;
use Weft\Bus\Internal\Wakeup;
use Weft\Bus\PublishException;
use Weft\Bus\Transport\Delivery;
use Weft\Bus\Transport\Outgoing;
use Weft\Bus\TransportException;
use Weft\Bus\UndefinedQueueException;
use Weft\Runtime\Internal\Scheduler;
use Weft\Runtime\Internal\WaitsFor;
use Weft\Runtime\Task;
use Weft\Runtime\TimeoutException;

use function Weft\detach;

/** @internal */
final class RabbitMqConsumer implements RemoteConsumer
{
    /** Bytes of a header that is kept when not all headers fit. */
    private const SHORT_HEADER_BYTES = 2_000;

    /** Key in a delivery's extra data: the subscription it is from, unless that is the first. */
    private const SUBSCRIPTION = 'subscription';

    /** @var list<array> fetched by a wait that was over before they came */
    private array $fetched = [];

    /** @var list<Delivery> of a stream, given back and to be handled again */
    private array $again = [];

    private ?Task $fetch = null;
    private AmqpException|BusException|null $failure = null;
    private bool $stopped = false;
    private bool $closed = false;

    /** Whether nothing is given back before the channel closes, see {@see keepOrder()}. */
    private bool $keepsOrder = false;

    /**
     * @param Wakeup               $arrival of messages
     * @param \Closure(self): void $forget
     */
    public function __construct(
        private readonly Subscription $subscription,
        private readonly Publisher $publisher,
        private readonly string $queue,
        private readonly int $prefetch,
        private readonly Wakeup $arrival,
        private readonly \Closure $forget,
    ) {}

    public function next(int $max, ?float $wait = null): array
    {
        $until = $wait === null ? null : Clock::monotonic() + $wait;
        while (!$this->stopped) {
            if ($this->again !== []) {
                /** @var list<Delivery> */
                return \array_splice($this->again, 0, $max);
            }
            /** @var list<array{int, bool, string, string, string, array<string, mixed>|string, array<string, mixed>}> $fields */
            $fields = $this->fetched !== [] ? \array_splice($this->fetched, 0, $max) : $this->fetch($max);
            if ($fields !== []) {
                return $this->subscription->number === 1
                    ? \array_map(Properties::delivery(...), $fields)
                    : \array_map(fn(array $delivery): Delivery => Properties::delivery($delivery, [self::SUBSCRIPTION => $this->subscription->number]), $fields);
            }
            if (!$this->arrival->wait($until)) {
                break;
            }
        }

        return [];
    }

    public function catchUp(): void
    {
        try {
            $this->subscription->roundTrip();
        } catch (AmqpException) {
            // Unacknowledged messages are redelivered when there is a connection.
        }
    }

    public function keepOrder(): void
    {
        $this->keepsOrder = true;
    }

    public function ack(Delivery $delivery, array $publish = []): void
    {
        if ($publish !== []) {
            $this->publisher->publishConfirmed($publish);
        }
        $this->subscription->ack($delivery->tag, self::number($delivery));
    }

    public function requeue(Delivery $delivery): void
    {
        if ($this->subscription->isStream) {
            // A stream cannot requeue; its messages are handled again in this process.
            $this->again[] = new Delivery($delivery->tag, $delivery->type, $delivery->body, $delivery->headers, true, $delivery->extra);
            $this->arrival->notify();
        } else {
            $this->subscription->giveBack($delivery->tag, self::number($delivery));
        }
    }

    public function deadLetter(Delivery $delivery, array $headers): void
    {
        try {
            $this->publishDeadLetter($delivery, $headers);
        } catch (PublishException $refused) {
            if (!$refused->getPrevious() instanceof UsageError) {
                throw $refused;
            }
            // All headers share one frame, which those of the message may almost fill.
            $this->publishDeadLetter($delivery, self::reduced($headers));
        }
        $this->subscription->ack($delivery->tag, self::number($delivery));
    }

    #[WaitsFor('deliveries of queue "{queue}" to give back')]
    public function stop(): void
    {
        if ($this->stopped) {
            return;
        }
        $this->stopped = true;
        $this->arrival->notify();
        if ($this->keepsOrder) {
            return;
        }
        try {
            $this->subscription->cancel();
            $this->giveBack($this->fetched);
            // Fetched messages are released to other consumers now, not when the last handler has ended.
            do {
                $left = $this->subscription->next($this->prefetch);
                $left = \is_int($left) ? Scheduler::await($left) : $left;
                $this->giveBack($left);
            } while ($left !== []);
        } catch (AmqpException | TimeoutException) {
            // Without a connection the broker requeues everything itself.
        } catch (UsageError $error) {
            // The consumer was closed meanwhile, which requeues everything.
            $this->closed || throw $error;
        }
    }

    public function close(): void
    {
        if ($this->closed) {
            return;
        }
        $this->closed = true;
        $this->stop();
        $this->fetch?->cancel('the consumer is closed');
        ($this->forget)($this);
        try {
            $this->subscription->close();
        } catch (AmqpException | TimeoutException) {
            // Without a connection the broker requeues everything itself.
        }
    }

    /** @param array<string, string> $headers */
    private function publishDeadLetter(Delivery $delivery, array $headers): void
    {
        $letter = new Outgoing($delivery->type, $delivery->body, $headers, mustRoute: true);
        try {
            $this->publisher->publishTo(DeadLetters::queueOf($this->queue), [$letter], $delivery->extra);
        } catch (UndefinedQueueException $undefined) {
            throw new PublishException("Cannot dead-letter a message of \"{$this->queue}\": {$undefined->getMessage()}", $undefined);
        }
    }

    /**
     * The bus's own headers as far as they are short, and how many were left out.
     *
     * @param array<string, string> $headers
     * @return array<string, string>
     */
    private static function reduced(array $headers): array
    {
        /** @var array<string, string> $names */
        $names = (new \ReflectionClass(Header::class))->getConstants();
        $own = \array_flip($names);
        $kept = \array_filter(\array_intersect_key($headers, $own), static fn(string $value): bool => \strlen($value) <= self::SHORT_HEADER_BYTES);

        return $kept + [Header::LEFT_OUT => (string) (\count($headers) - \count($kept))];
    }

    /** @return list<array> the received deliveries; when there are none, the waiter is woken at the next one */
    private function fetch(int $max): array
    {
        if ($this->failure !== null) {
            throw new TransportException("Cannot consume queue \"{$this->queue}\": {$this->failure->getMessage()}", $this->failure);
        }
        if ($this->fetch !== null) {
            return [];
        }
        try {
            $here = $this->subscription->next($max);
        } catch (ConsumerCancelledException $cancelled) {
            $this->fetch = detach($this->reopen(...), $cancelled);

            return [];
        } catch (AmqpException $exception) {
            throw new TransportException("Cannot consume queue \"{$this->queue}\": {$exception->getMessage()}", $exception);
        }
        if (\is_int($here)) {
            // Detached: no scope of the caller should wait for it.
            $this->fetch = detach($this->await(...), $here);

            return [];
        }

        return $here;
    }

    /** In its own task: cancelling a wait of next() must not lose messages that arrive at that moment. */
    #[WaitsFor('messages in queue "{queue}"')]
    private function await(int $operation): void
    {
        try {
            $arrived = Scheduler::await($operation);
            $this->stopped ? $this->giveBack($arrived) : \array_push($this->fetched, ...$arrived);
        } catch (ConsumerCancelledException $cancelled) {
            $this->reopen($cancelled);
        } catch (AmqpException $exception) {
            $this->failure = $exception;
        } finally {
            $this->fetch = null;
            $this->arrival->notify();
        }
    }

    /** The queue was deleted and its messages are lost; it is declared again for new ones. */
    private function reopen(ConsumerCancelledException $cancelled): void
    {
        try {
            if (!$this->stopped && !$this->subscription->reopen()) {
                $this->failure = $cancelled;
            }
            $this->fetched = [];
        } catch (AmqpException | BusException $exception) {
            $this->failure = $exception;
        } finally {
            $this->fetch = null;
            $this->arrival->notify();
        }
    }

    private static function number(Delivery $delivery): int
    {
        return $delivery->extra[self::SUBSCRIPTION] ?? 1;
    }

    /** @param list<array> $deliveries as the extension made them */
    private function giveBack(array $deliveries): void
    {
        foreach ($this->subscription->isStream || $this->keepsOrder ? [] : $deliveries as [$tag]) {
            $this->subscription->giveBack($tag, $this->subscription->number);
        }
    }
}
