<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Flow;

use Psr\Log\LoggerInterface;
use Weft\Bus\CircuitBreaker;
use Weft\Bus\Internal\RetryPolicy;

/**
 * The state of a circuit breaker: closed, open until a time, or waiting for the one message that is tried.
 *
 * @internal
 */
final class Breaker
{
    private int $inARow = 0;

    /** When the pause is over, by the monotonic clock; null when closed. */
    private ?float $until = null;

    private float $pause;

    /** Whether the one message is on its way. */
    private bool $probing = false;

    public function __construct(
        private readonly CircuitBreaker $rule,
        private readonly string $queue,
        private readonly LoggerInterface $logger,
    ) {
        $this->pause = $rule->pause;
    }

    /** Whether no message may be started now. */
    public function holds(): bool
    {
        return $this->until !== null && ($this->probing || self::now() < $this->until);
    }

    /** Seconds until that may change by itself; null when it does not. */
    public function left(): ?float
    {
        return $this->until === null || $this->probing ? null : \max(0.0, $this->until - self::now());
    }

    /** A message is started, and it may be the one that is tried. */
    public function started(): void
    {
        $this->probing = $this->until !== null;
    }

    public function succeeded(): void
    {
        $this->inARow = 0;
        // One that was started before the pause says nothing about now.
        if ($this->probing) {
            $this->until = null;
            $this->probing = false;
            $this->pause = $this->rule->pause;
            $this->logger->notice('Queue {queue} is consumed again', ['queue' => $this->queue]);
        }
    }

    public function failed(\Throwable $thrown): void
    {
        if (!$this->counts($thrown)) {
            // It was answered: that a message is at fault says nothing against the others.
            $this->probing ? $this->succeeded() : null;

            return;
        }
        $this->inARow++;
        if ($this->probing) {
            $this->pause = \min($this->rule->longest, 2 * $this->pause);
            $this->open($thrown);
        } elseif ($this->until === null && $this->inARow >= $this->rule->failures) {
            $this->open($thrown);
        }
    }

    /** It was neither: the message goes back to its queue. */
    public function undecided(): void
    {
        $this->probing = false;
    }

    private function open(\Throwable $thrown): void
    {
        $this->probing = false;
        $this->until = self::now() + $this->pause;
        $this->logger->error('Queue {queue} is not consumed for {seconds} seconds after {count} failures in a row: {error}', [
            'queue' => $this->queue,
            'seconds' => $this->pause,
            'count' => $this->inARow,
            'error' => $thrown->getMessage(),
            'exception' => $thrown,
        ]);
    }

    private function counts(\Throwable $thrown): bool
    {
        if (RetryPolicy::isFinal($thrown)) {
            return false;
        }
        for ($error = $thrown; $error !== null; $error = $error->getPrevious()) {
            foreach ($this->rule->on as $class) {
                if ($error instanceof $class) {
                    return true;
                }
            }
        }

        return $this->rule->on === [];
    }

    private static function now(): float
    {
        return \hrtime(true) / 1e9;
    }
}
