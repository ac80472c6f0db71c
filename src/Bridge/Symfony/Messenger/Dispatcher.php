<?php

declare(strict_types=1);

namespace Weft\Bridge\Symfony\Messenger;

use Symfony\Component\Messenger\Exception\HandlerFailedException;
use Symfony\Component\Messenger\MessageBusInterface;
use Symfony\Component\Messenger\Stamp\ConsumedByWorkerStamp;
use Symfony\Component\Messenger\Stamp\ReceivedStamp;
use Weft\Runtime\CancelledException;

/** Hands a received message to the handlers of one kernel. */
final class Dispatcher
{
    public function __construct(private readonly MessageBusInterface $bus, private readonly Transports $transports)
    {
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
        try {
            $this->bus->dispatch($envelope->with(new ReceivedStamp($transport), new ConsumedByWorkerStamp()));
        } catch (HandlerFailedException $failed) {
            $failures = \array_values(self::failures($failed));
            // The task of the consumer is not cancelled by what a handler has cancelled.
            throw \count($failures) === 1 && !$failures[0] instanceof CancelledException ? $failures[0] : $failed;
        }
    }

    /** @return array<array-key, \Throwable> what the handlers have thrown */
    public static function failures(HandlerFailedException $failed): array
    {
        // Symfony 6.4 has renamed it.
        return \method_exists($failed, 'getWrappedExceptions') ? $failed->getWrappedExceptions() : $failed->getNestedExceptions();
    }
}
