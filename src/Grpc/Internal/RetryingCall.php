<?php

declare(strict_types=1);

namespace Weft\Grpc\Internal;

use Weft\Grpc\Client\MethodConfig;
use Weft\Grpc\Status;
use Weft\Grpc\StatusException;
use Weft\Native;
use Weft\Native\GrpcClientCall;
use Weft\Runtime\Internal\Scheduler;

/**
 * How often a call is made. Its request is at hand, so that it can be made again.
 *
 * @internal
 */
final class RetryingCall
{
    /**
     * Seconds a server may ask for with `grpc-retry-pushback-ms`. The header has room for 24 days (gRFC A6): where a server wants
     * more than this, its failure is the call's, as where that is beyond the call's deadline.
     */
    private const LONGEST_PUSHBACK = 300.0;

    /** Before the one that is being made. */
    public int $made = 0;
    private readonly ?float $ends;
    /** A server that has not begun to handle a call is asked once more, whatever the policy is. */
    private bool $wasUnprocessed = false;

    /** @param float|null $timeout seconds for all of them together */
    public function __construct(public readonly MethodConfig $config, private readonly ?RetryThrottle $tokens, ?float $timeout)
    {
        $this->ends = $timeout === null ? null : \hrtime(true) / 1e9 + $timeout;
    }

    public function timeLeft(): ?float
    {
        return $this->ends === null ? null : \max($this->ends - \hrtime(true) / 1e9, 0.0);
    }

    public function succeeded(): void
    {
        $this->tokens?->succeeded();
    }

    /**
     * Waits until the next attempt is due.
     *
     * @param StatusException $failure of the last one
     *
     * @throws StatusException that failure, where there is none
     */
    public function next(StatusException $failure, GrpcClientCall $call): void
    {
        if ($call->isUnprocessed() && !$this->wasUnprocessed) {
            $this->wasUnprocessed = true;

            return;
        }
        $pause = $this->pause($failure, $call);
        $left = $this->timeLeft();
        if ($pause === null || $left !== null && $left <= $pause) {
            throw $failure;
        }
        $this->made++;
        Scheduler::await(Native\sleep($pause));
    }

    /** Seconds; null where it must not be made again. */
    private function pause(StatusException $failure, GrpcClientCall $call): ?float
    {
        $policy = $this->config->retry;
        if ($policy === null || $call->hasBegun()) {
            return null;
        }
        $pushback = $call->pushback();
        $isForbidden = $pushback !== null && $pushback < 0;
        if (!$isForbidden && !\in_array($failure->status, $policy->statuses, true)) {
            return null;
        }
        $isThrottled = $this->tokens?->failed() === false;
        if ($isForbidden || $isThrottled || $this->made + 1 >= $policy->maxAttempts) {
            return null;
        }
        if ($pushback === null) {
            return $policy->backoff($this->made + 1);
        }

        return $pushback / 1e3 <= self::LONGEST_PUSHBACK ? $pushback / 1e3 : null;
    }
}
