<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\RabbitMq;

use Psr\Log\LoggerInterface;
use Psr\Log\LogLevel;
use Weft\Amqp\EventKind;
use Weft\Native\AmqpConnection;
use Weft\Runtime\Internal\Scheduler;
use Weft\Runtime\Internal\WaitsFor;

/**
 * Logs the events of one connection.
 *
 * @internal
 */
final class ConnectionLog
{
    /** @param string $purpose tells the connections of one transport apart */
    public function __construct(
        private readonly AmqpConnection $connection,
        private readonly string $purpose,
        private readonly LoggerInterface $logger,
    ) {}

    /** Ends when the connection is closed. */
    #[WaitsFor('the next event of the connection to RabbitMQ for {purpose}')]
    public function follow(): void
    {
        while (($event = Scheduler::await($this->connection->nextEvent())) !== null) {
            $this->write(EventKind::from($event[0]), $event[1]);
        }
    }

    private function write(EventKind $kind, string $reason): void
    {
        $message = 'RabbitMQ connection for {purpose}: {event}' . ($reason === '' ? '' : ': {reason}');
        $this->logger->log(self::level($kind), $message, [
            'purpose' => $this->purpose,
            'event' => $kind->value,
            'reason' => $reason,
        ]);
    }

    private static function level(EventKind $kind): string
    {
        return match ($kind) {
            EventKind::Unblocked, EventKind::Recovered => LogLevel::NOTICE,
            EventKind::Blocked, EventKind::Disconnected, EventKind::ReconnectFailed, EventKind::ConsumerCancelled => LogLevel::WARNING,
            EventKind::RestoreFailed, EventKind::ChannelClosed => LogLevel::ERROR,
        };
    }
}
