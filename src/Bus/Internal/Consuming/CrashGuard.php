<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Consuming;

use Psr\Log\LoggerInterface;
use Weft\Bus\Internal\Persistence\Persistence;
use Weft\Bus\Transport\Delivery;
use Weft\Pool\PoolException;
use Weft\Runtime\Mutex;
use Weft\Sql\SqlException;

use function Weft\delay;
use function Weft\shield;

/**
 * Detects messages that crash workers. Everything in flight with such a message is redelivered, too. Messages that are redelivered
 * repeatedly are handled one at a time, so that the next crash is counted for the message that causes it.
 *
 * @internal
 */
final class CrashGuard
{
    /** Number of redeliveries from which on a message is handled alone. */
    private const HANDLE_ALONE_FROM = 2;

    /** Seconds until a message is requeued whose redeliveries could not be counted. */
    private const REQUEUE_DELAY = 1.0;

    private readonly Mutex $alone;

    public function __construct(
        private readonly Persistence $persistence,
        private readonly DatabaseOutage $outage,
        private readonly string $queue,
        private readonly LoggerInterface $logger,
    ) {
        $this->alone = new Mutex();
    }

    /**
     * @param \Closure(): void $handle
     * @throws \Weft\Bus\CrashedTooOftenException
     * @throws HandlingInterruptedException when the database that counts is unavailable
     */
    public function guard(Delivery $delivery, Worker $worker, \Closure $handle): void
    {
        $known = $this->ask(fn(): int => $this->persistence->redeliveries($delivery, $this->queue), $worker);
        if ($known + 1 < self::HANDLE_ALONE_FROM) {
            $this->attempt($delivery, $worker, $handle);
        } else {
            $this->alone->synchronized(fn() => $this->attempt($delivery, $worker, $handle));
        }
    }

    /** @param \Closure(): void $handle */
    private function attempt(Delivery $delivery, Worker $worker, \Closure $handle): void
    {
        try {
            $delivery->redeliveries = $this->ask(fn(): int => $this->persistence->countRedelivery($delivery, $this->queue), $worker);
            $handle();
        } finally {
            // The worker is running in any case.
            shield(fn() => $this->persistence->clearRedeliveries($delivery, $this->queue));
        }
    }

    /** @param \Closure(): int $question */
    private function ask(\Closure $question, Worker $worker): int
    {
        for ($times = 1; true; $times++) {
            try {
                return $question();
            } catch (PoolException | SqlException $exception) {
                if (!$this->outage->wait($exception, $times, $worker)) {
                    $this->logger->error('Redeliveries of queue {queue} cannot be counted, the message is requeued: {error}', ['queue' => $this->queue, 'error' => $exception->getMessage(), 'exception' => $exception]);
                    delay(self::REQUEUE_DELAY);
                    throw new HandlingInterruptedException("Redeliveries cannot be counted: {$exception->getMessage()}", previous: $exception);
                }
            }
        }
    }
}
