<?php

declare(strict_types=1);

namespace Weft\Bridge\Symfony\Internal;

use Psr\Cache\CacheItemPoolInterface;
use Psr\Log\LoggerInterface;
use Symfony\Component\Messenger\EventListener\StopWorkerOnRestartSignalListener;
use Weft\Bus\Bus;

use function Weft\delay;
use function Weft\shield;

/**
 * Ends a worker after `messenger:stop-workers`, which stores its time in a pool of the cache. Messenger's own worker looks at it between two messages.
 *
 * @internal
 */
final class RestartSignal
{
    private const CHECK_INTERVAL = 1.0;

    private readonly float $started;

    /** Whether the pool could not be read: that is logged once. */
    private bool $isBlind = false;

    public function __construct(private readonly CacheItemPoolInterface $pool, private readonly LoggerInterface $logger)
    {
        $this->started = \microtime(true);
    }

    /** Stops the bus once the signal is there; messages in flight finish. Until then, it does not return. */
    public function stopInTime(Bus $bus): void
    {
        // Shielded: what a pool throws when its wait is cancelled would be taken for a failure of the pool.
        while (!shield($this->isGiven(...))) {
            delay(self::CHECK_INTERVAL);
        }
        $this->logger->notice('messenger:stop-workers was called, the worker ends when its messages in flight have finished');
        $bus->stop();
    }

    private function isGiven(): bool
    {
        try {
            $item = $this->pool->getItem(StopWorkerOnRestartSignalListener::RESTART_REQUESTED_TIMESTAMP_KEY);
            $this->isBlind = false;

            return $item->isHit() && $this->started < $item->get();
        } catch (\Throwable $thrown) {
            $this->isBlind || $this->logger->error('The signal of messenger:stop-workers cannot be read: {error}', ['error' => $thrown->getMessage(), 'exception' => $thrown]);
            $this->isBlind = true;

            return false;
        }
    }
}
