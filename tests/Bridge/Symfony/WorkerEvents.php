<?php

declare(strict_types=1);

namespace Weft\Tests\Bridge\Symfony;

use Symfony\Component\EventDispatcher\EventSubscriberInterface;
use Symfony\Component\Messenger\Event\WorkerMessageFailedEvent;
use Symfony\Component\Messenger\Event\WorkerMessageHandledEvent;
use Symfony\Component\Messenger\Event\WorkerMessageReceivedEvent;
use Symfony\Component\Messenger\Event\WorkerMessageRetriedEvent;

/** Notes the events of Messenger's worker; a job "skip" is not handled. */
final class WorkerEvents implements EventSubscriberInterface
{
    /** @var list<string> */
    public static array $seen = [];

    /** @return array<class-string, string> */
    public static function getSubscribedEvents(): array
    {
        return [
            WorkerMessageReceivedEvent::class => 'received', WorkerMessageHandledEvent::class => 'handled',
            WorkerMessageFailedEvent::class => 'failed', WorkerMessageRetriedEvent::class => 'retried',
        ];
    }

    public function received(WorkerMessageReceivedEvent $event): void
    {
        $message = $event->getEnvelope()->getMessage();
        $message instanceof Job && $message->what === 'skip' && $event->shouldHandle(false);
        self::$seen[] = "received from {$event->getReceiverName()}";
    }

    public function handled(WorkerMessageHandledEvent $event): void
    {
        self::$seen[] = "handled from {$event->getReceiverName()}";
    }

    public function failed(WorkerMessageFailedEvent $event): void
    {
        self::$seen[] = "failed from {$event->getReceiverName()}: {$event->getThrowable()->getPrevious()?->getMessage()}";
    }

    public function retried(WorkerMessageRetriedEvent $event): void
    {
        self::$seen[] = "retried from {$event->getReceiverName()}";
    }
}
