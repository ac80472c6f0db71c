<?php

declare(strict_types=1);

namespace App;

use Symfony\Component\EventDispatcher\EventSubscriberInterface;
use Symfony\Component\Messenger\Event\WorkerMessageFailedEvent;
use Symfony\Component\Messenger\Event\WorkerRunningEvent;

/** Notes when each phase ends and stops the worker after the last event. Both hooks run after the acknowledgement. */
final class Progress implements EventSubscriberInterface
{
    public float $commandsFinished = 0.0;
    public float $eventsFinished = 0.0;

    public function __construct(
        private readonly StoreCustomerHandler $commands,
        private readonly CustomerStoredHandler $events,
        private readonly int $total,
    ) {
    }

    public static function getSubscribedEvents(): array
    {
        return [WorkerRunningEvent::class => 'onRunning', WorkerMessageFailedEvent::class => 'onFailure'];
    }

    public function commands(): int
    {
        return $this->commands->handled;
    }

    public function events(): int
    {
        return $this->events->handled;
    }

    public function onRunning(WorkerRunningEvent $event): void
    {
        if ($this->commands->handled === $this->total && $this->commandsFinished === 0.0) {
            $this->commandsFinished = microtime(true);
        }
        if ($this->events->handled === $this->total) {
            $this->eventsFinished = microtime(true);
            $event->getWorker()->stop();
        }
    }

    public function onFailure(WorkerMessageFailedEvent $event): never
    {
        throw $event->getThrowable();
    }
}
