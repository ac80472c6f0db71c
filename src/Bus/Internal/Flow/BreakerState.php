<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Flow;

use Psr\Log\LoggerInterface;
use Weft\Bus\CircuitBreaker;
use Weft\Bus\Internal\ExceptionChain;
use Weft\Bus\Internal\Consuming\RetryPolicy;

/**
 * The state of a circuit breaker: closed, open until a time, or half-open with one message being tried.
 *
 * @internal
 */
final class BreakerState
{
    private int $inARow = 0;

    /** The end of the pause, by the monotonic clock; null when closed. */
    private ?float $until = null;

    private float $pause;

    /** Tag of the message being tried; null when there is none. */
    private ?int $probe = null;

    public function __construct(
        private readonly CircuitBreaker $rule,
        private readonly string $queue,
        private readonly LoggerInterface $logger,
    ) {
        $this->pause = $rule->pause;
    }

    /** Whether no message may start. */
    public function isOpen(): bool
    {
        return $this->until !== null && ($this->probe !== null || self::now() < $this->until);
    }

    /** Seconds until the state may change by itself; null when it does not. */
    public function retryAfter(): ?float
    {
        return $this->until === null || $this->probe !== null ? null : \max(0.0, $this->until - self::now());
    }

    /** A message starts, possibly as the one being tried. */
    public function started(int $tag): void
    {
        $this->probe = $this->until === null ? null : $tag;
    }

    public function succeeded(int $tag): void
    {
        $this->inARow = 0;
        // A message that started before the pause says nothing about the current state.
        if ($this->probe === $tag) {
            $this->until = $this->probe = null;
            $this->pause = $this->rule->pause;
            $this->logger->notice('Circuit breaker of queue {queue} closes: a message succeeded', ['queue' => $this->queue]);
        }
    }

    public function failed(int $tag, \Throwable $thrown): void
    {
        if (!$this->counts($thrown)) {
            // A failure caused by the message itself shows that the handler works.
            $this->probe === $tag && $this->succeeded($tag);

            return;
        }
        $this->inARow++;
        if ($this->probe === $tag) {
            $this->pause = \min($this->rule->maxPause, 2 * $this->pause);
            $this->open($thrown);
        } elseif ($this->until === null && $this->inARow >= $this->rule->failures) {
            $this->open($thrown);
        }
    }

    /** The message ended without an outcome: another one is tried. */
    public function ended(int $tag): void
    {
        if ($this->probe === $tag) {
            $this->probe = null;
        }
    }

    private function open(\Throwable $thrown): void
    {
        $this->probe = null;
        $this->until = self::now() + $this->pause;
        $this->logger->error('Circuit breaker of queue {queue} opens for {seconds} seconds after {count} consecutive failures: {error}', [
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
        foreach (ExceptionChain::of($thrown) as $error) {
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
