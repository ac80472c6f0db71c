<?php

declare(strict_types=1);

namespace Weft\Bus\Internal;

use Psr\Log\LoggerInterface;
use Psr\Log\LogLevel;
use Weft\Bus\Header;
use Weft\Bus\Observer;
use Weft\Bus\Progress;
use Weft\Bus\Transport\Consumer;
use Weft\Bus\Transport\Delivery;

use function Weft\delay;

/**
 * The life of one delivery: dispatched; or parked; or given back.
 *
 * @internal
 */
final class Handling
{
    /** Seconds before a message goes back to the queue when not even parking succeeded. */
    private const PAUSE = 1.0;

    public function __construct(
        private readonly Consumer $consumer,
        private readonly string $queue,
        private readonly Dispatcher $dispatcher,
        private readonly Progress $progress,
        private readonly LoggerInterface $logger,
        private readonly ?Observer $observer,
    ) {}

    /**
     * Ends with the delivery settled, whatever its handlers do; only a forced stop leaves it unsettled. Throws nothing
     * that a handler throws.
     */
    public function run(Delivery $delivery, Worker $worker): void
    {
        $started = $this->observer === null ? 0 : \hrtime(true);
        $this->progress->inFlight++;
        try {
            $this->dispatcher->dispatch($delivery, $worker);
            $this->observer === null || $this->tell(fn() => $this->observer->handled($delivery->type, (\hrtime(true) - $started) / 1e9));
        } catch (\Throwable $thrown) {
            // A forced stop cancels handlers: their messages stay unsettled and go back when the consumer closes.
            if (!$worker->isForced()) {
                $worker->free($delivery);
                $this->fail($delivery, $thrown instanceof Failure ? $thrown : new Failure($thrown));
            }
        } finally {
            $this->progress->inFlight--;
        }
    }

    private function fail(Delivery $delivery, Failure $failure): void
    {
        $this->progress->failed++;
        $this->log(LogLevel::ERROR, $failure->handlers === []
            ? 'Message {type} {id} could not be handled: {error}'
            : 'Message {type} {id} failed in {handler}: {error}', [
            'type' => $delivery->type,
            'id' => $delivery->headers[Header::MESSAGE_ID] ?? '',
            'handler' => \implode(', ', $failure->handlers),
            'error' => $failure->error->getMessage(),
            'exception' => $failure->error,
        ]);
        $parked = $this->park($delivery, $failure);
        $this->tell(fn() => $this->observer?->failed($delivery->type, $failure->error, $parked));
    }

    /** Who watches must not change what becomes of a message. */
    private function tell(\Closure $observation): void
    {
        try {
            $observation();
        } catch (\Throwable $thrown) {
            $this->log(LogLevel::ERROR, 'The observer of queue {queue} failed: {error}', [
                'queue' => $this->queue,
                'error' => $thrown->getMessage(),
                'exception' => $thrown,
            ]);
        }
    }

    /** @param array<string, mixed> $context */
    private function log(string $level, string $message, array $context): void
    {
        try {
            $this->logger->log($level, $message, $context);
        } catch (\Throwable $thrown) {
            \error_log("Weft: the logger of queue {$this->queue} failed: {$thrown->getMessage()}; it was told of: {$context['error']}");
        }
    }

    private function park(Delivery $delivery, Failure $failure): bool
    {
        try {
            $this->consumer->park($delivery, $failure->headers($delivery, $this->queue));
            $this->progress->parked++;

            return true;
        } catch (\Throwable $thrown) {
            $this->log(LogLevel::CRITICAL, 'Message {type} {id} could not be parked and goes back to the queue: {error}', [
                'type' => $delivery->type,
                'id' => $delivery->headers[Header::MESSAGE_ID] ?? '',
                'error' => $thrown->getMessage(),
                'exception' => $thrown,
            ]);
            // The message holds its place in the prefetch meanwhile, so that a broker in trouble is not asked in a hot loop.
            delay(self::PAUSE);
            $this->consumer->requeue($delivery);

            return false;
        }
    }
}
