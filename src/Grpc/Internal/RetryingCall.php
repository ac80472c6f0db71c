<?php

declare(strict_types=1);

namespace Weft\Grpc\Internal;

use Weft\Grpc\Client\MethodConfig;
use Weft\Grpc\Status;
use Weft\Grpc\StatusException;
use Weft\Native;
use Weft\Native\GrpcClientCall;
use Weft\Runtime\Internal\Scheduler;
use Weft\Runtime\Internal\WaitsFor;

/**
 * A call with its retries. The request message is kept for further attempts.
 *
 * @internal
 */
final class RetryingCall
{
    /**
     * The longest accepted `grpc-retry-pushback-ms` in seconds. The header could ask for 24 days (gRFC A6): a longer backoff, or one beyond
     * the deadline, ends the call with the failure of the server.
     */
    private const LONGEST_PUSHBACK = 300.0;

    /** The number of attempts before the current one. */
    public int $made = 0;
    private readonly ?float $ends;
    /** A call that no server has started to handle is retried once, independent of the policy. */
    private bool $wasUnprocessed = false;

    /** @param float|null $timeout seconds for all attempts together */
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
     * @param StatusException $failure of the last attempt
     *
     * @throws StatusException that failure, if there is no further attempt
     */
    #[WaitsFor('the next attempt of a gRPC call')]
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

    /** The backoff in seconds; null if the call must not be retried. */
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
