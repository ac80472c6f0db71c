<?php

declare(strict_types=1);

namespace Weft\Bridge\Symfony\Messenger;

use Symfony\Component\EventDispatcher\EventDispatcherInterface;
use Symfony\Component\Messenger\Envelope;
use Symfony\Component\Messenger\Event\WorkerMessageFailedEvent;
use Symfony\Component\Messenger\Event\WorkerMessageHandledEvent;
use Symfony\Component\Messenger\Event\WorkerMessageReceivedEvent;
use Symfony\Component\Messenger\EventListener\SendFailedMessageForRetryListener;
use Symfony\Component\Messenger\EventListener\SendFailedMessageToFailureTransportListener;
use Symfony\Component\Messenger\Exception\HandlerFailedException;
use Symfony\Component\Messenger\MessageBusInterface;
use Symfony\Component\Messenger\Stamp\ConsumedByWorkerStamp;
use Symfony\Component\Messenger\Stamp\ReceivedStamp;
use Weft\Runtime\CancelledException;
use Weft\Runtime\Internal\Scheduler;

/** Hands a received message to the handlers of one kernel, with the events of Messenger's worker. */
final class Dispatcher
{
    /** Listeners of Messenger's own for what is the bus's here: they would send a failed message a second time. */
    private const RETRIES = [SendFailedMessageForRetryListener::class, SendFailedMessageToFailureTransportListener::class];

    /** @param EventDispatcherInterface|null $events of the kernel; null: it has none */
    public function __construct(
        private readonly MessageBusInterface $bus,
        private readonly Transports $transports,
        private readonly ?EventDispatcherInterface $events = null,
    ) {
    }

    /**
     * @param string $queue that the message was received from
     *
     * @throws \Throwable what the only handler that failed has thrown, or {@see HandlerFailedException}
     */
    public function dispatch(Packed $packed, string $queue): void
    {
        $transport = $this->transports->name($queue);
        $envelope = $this->transports->serializer($transport)->decode(['body' => $packed->body, 'headers' => $packed->headers]);
        $received = new WorkerMessageReceivedEvent($envelope, $transport);
        $this->events?->dispatch($received);
        if (!$received->shouldHandle()) {
            return;
        }
        $envelope = $received->getEnvelope();
        try {
            $envelope = $this->bus->dispatch($envelope->with(new ReceivedStamp($transport), new ConsumedByWorkerStamp()));
        } catch (\Throwable $thrown) {
            // A worker that is stopped at once has no failed message.
            Scheduler::cancellationIn($thrown) === null && $this->tellFailure($envelope, $transport, $thrown);
            $failures = $thrown instanceof HandlerFailedException ? \array_values(self::failures($thrown)) : [];
            // The task of the consumer is not cancelled by what a handler has cancelled.
            throw \count($failures) === 1 && !$failures[0] instanceof CancelledException ? $failures[0] : $thrown;
        }
        $this->events?->dispatch(new WorkerMessageHandledEvent($envelope, $transport));
    }

    private function tellFailure(Envelope $envelope, string $transport, \Throwable $thrown): void
    {
        $event = new WorkerMessageFailedEvent($thrown instanceof HandlerFailedException ? $thrown->getEnvelope() : $envelope, $transport, $thrown);
        foreach ($this->events?->getListeners($event::class) ?? [] as $listener) {
            if (!\is_array($listener) || !\in_array(\is_object($listener[0]) ? $listener[0]::class : $listener[0], self::RETRIES, true)) {
                $listener($event, $event::class, $this->events);
            }
        }
    }

    /** @return array<array-key, \Throwable> what the handlers have thrown */
    public static function failures(HandlerFailedException $failed): array
    {
        // Symfony 6.4 has renamed it.
        return \method_exists($failed, 'getWrappedExceptions') ? $failed->getWrappedExceptions() : $failed->getNestedExceptions();
    }
}
