<?php

declare(strict_types=1);

namespace Weft\Bus;

use Weft\Internal\Number;

/**
 * Pauses a queue after consecutive failures; passed to {@see Bus::consume()}.
 *
 * After `$failures` consecutive failures the breaker opens: no message is started for `$pause` seconds. Then one message is tried. If
 * it succeeds the breaker closes; if it fails the pause starts again, twice as long. Failed messages are retried or dead-lettered as
 * usual; messages that were not started stay in the queue. Failures caused by the message itself (it cannot be decoded, is unknown,
 * is invalid, {@see Unrecoverable}) do not count. A breaker applies to one queue in one process.
 */
final class CircuitBreaker
{
    /**
     * @param int<1, max>                    $failures consecutive failures until the breaker opens. Raise it where single messages fail often
     * @param float                          $pause    seconds until the first message is tried, above 0 and at most `$maxPause`. Change it to the
     *                                                 time in which the service usually recovers
     * @param float                          $maxPause longest pause in seconds, at least `$pause`; must be shorter than the broker's acknowledgement
     *                                                 timeout, 1800 s by default on RabbitMQ. Lower it where the service must be used again
     *                                                 soon after a long outage
     * @param list<class-string<\Throwable>> $on       exceptions that count, directly or as a previous exception; empty: all. Name those that tell
     *                                                 that the service is down
     */
    public function __construct(
        public readonly int $failures = 10,
        public readonly float $pause = 5.0,
        public readonly float $maxPause = 60.0,
        public readonly array $on = [],
    ) {
        if ($failures < 1) {
            throw new \ValueError("A circuit breaker must open after at least 1 failure, got {$failures}");
        }
        if (\is_nan($pause + $maxPause) || $pause <= 0.0 || $maxPause < $pause || $maxPause === \INF) {
            throw new \ValueError('The pause of a circuit breaker must be above 0 seconds and at most maxPause, which is finite, got ' . Number::text($pause) . ' and ' . Number::text($maxPause));
        }
    }
}
