<?php

declare(strict_types=1);

namespace Weft\Bus;

/**
 * When to stop consuming because everything fails: given to {@see Bus::consume()}.
 *
 * After so many failures in a row no message is started for a while. Then one is, to see: if it succeeds all go on, if it
 * fails the pause begins again, twice as long. What has failed before goes its way, to a retry or the dead letters; what has not
 * been started stays where it is. Failures that are a message's own fault (it cannot be decoded, is unknown, is invalid,
 * {@see Unrecoverable}) do not count. It is for one queue in one process.
 */
final class CircuitBreaker
{
    /**
     * @param int<1, max>                    $failures in a row
     * @param float                          $pause    seconds before the first message that is tried
     * @param float                          $maxPause  most seconds of a pause; less than the broker lets a message wait for its
     *                                                 acknowledgement, RabbitMQ's default is 1800
     * @param list<class-string<\Throwable>> $on       exceptions that count, themselves or as a previous one; empty: all
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
            throw new \ValueError("The pause of a circuit breaker must be above 0 seconds and at most maxPause, got {$pause} and {$maxPause}");
        }
    }
}
