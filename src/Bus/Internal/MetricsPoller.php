<?php

declare(strict_types=1);

namespace Weft\Bus\Internal;

use Psr\Log\LoggerInterface;
use Weft\Bus\DeadLetters;
use Weft\Bus\Internal\Persistence\Persistence;
use Weft\Bus\Transport;
use Weft\Bus\Transport\RabbitMq;
use Weft\Native;
use Weft\Runtime\CancelledException;

use function Weft\delay;

/**
 * Publishes backlogs and the state of the broker's connections to `/metrics`, polled while a queue is consumed.
 *
 * @internal
 */
final class MetricsPoller
{
    /** Seconds between two polls. */
    private const POLL_INTERVAL = 5.0;

    private const STATES = ['connected', 'connecting', 'blocked', 'closed'];

    public function __construct(
        private readonly Transport $transport,
        private readonly ?Persistence $persistence,
        private readonly LoggerInterface $logger,
    ) {}

    /** Runs until it is cancelled. */
    public function follow(string $queue): never
    {
        while (true) {
            // Independently: the database can be queried without the broker.
            $this->attempt($this->connections(...));
            $this->attempt($this->backlog(...));
            $this->attempt(fn() => $this->blocked($queue));
            $this->attempt(fn() => $this->depth($queue));
            $this->attempt(fn() => $this->depth(DeadLetters::queueOf($queue)));
            delay(self::POLL_INTERVAL);
        }
    }

    private function attempt(\Closure $look): void
    {
        try {
            $look();
        } catch (CancelledException $cancelled) {
            throw $cancelled;
        } catch (\Throwable $thrown) {
            $this->logger->debug('A metric of the bus could not be read: {error}', ['error' => $thrown->getMessage(), 'exception' => $thrown]);
        }
    }

    private function depth(string $queue): void
    {
        Native\setGauge('weft_bus_queue_messages', 'Messages in a queue that are ready for delivery.', ['queue' => $queue], (float) $this->transport->depth($queue));
    }

    private function backlog(): void
    {
        if ($this->persistence === null) {
            return;
        }
        $labels = ['database' => $this->persistence->database->name()];
        [$outbox, $oldest, $delayed] = $this->persistence->outboxSizes();
        Native\setGauge('weft_bus_outbox_messages', 'Messages in the outbox, counted up to 100,000.', $labels, (float) $outbox);
        Native\setGauge('weft_bus_outbox_oldest_seconds', 'Age of the oldest message in the outbox; 0 when it is empty.', $labels, $oldest);
        Native\setGauge('weft_bus_delayed_messages', 'Delayed messages, counted up to 100,000.', $labels, (float) $delayed);
    }

    private function blocked(string $queue): void
    {
        if ($this->persistence === null) {
            return;
        }
        [$keys, $messages] = $this->persistence->keys->sizes($queue);
        Native\setGauge('weft_bus_blocked_keys', 'Keys of ordered messages that a failed message blocks, counted up to 100,000.', ['queue' => $queue], (float) $keys);
        Native\setGauge('weft_bus_blocked_messages', 'Messages that wait behind blocked keys, counted up to 100,000.', ['queue' => $queue], (float) $messages);
    }

    private function connections(): void
    {
        if (!$this->transport instanceof RabbitMq) {
            return;
        }
        foreach ($this->transport->status() as $purpose => $status) {
            if ($status === null) {
                continue;
            }
            foreach (self::STATES as $state) {
                Native\setGauge('weft_bus_connection', 'State of a connection to the broker: 1 for the current state, 0 for the others.', ['purpose' => $purpose, 'state' => $state], (float) ($status[0] === $state));
            }
        }
    }
}
