<?php

declare(strict_types=1);

namespace Weft\Bus;

use Weft\Internal\Number;

/** How a queue is consumed; see {@see Bus::consume()} and {@see \Weft\App::consume()}. */
final class ConsumeOptions
{
    /** Handlers that may run at the same time. The memory of the process allows fewer: each has a fiber. */
    public const MAX_CONCURRENCY = 1_000_000;

    /** Messages: a worker holds them in memory, and has a consumer of RabbitMQ for each 65,535 of them. */
    public const MAX_PREFETCH = 1_000_000;

    /** Seconds; more than 31 years. */
    public const MAX_STOP_AFTER = 1e9;

    /**
     * @param int<1, max>|null    $prefetch      unacknowledged deliveries, at most 1,000,000; default: twice the concurrency, 200 where that is adapted.
     *                                           At most 65,535 for ordered messages. Raise it for priorities and fairness, which apply to prefetched
     *                                           messages only
     * @param float|null          $grace         seconds that handlers in flight may run after the first signal or {@see Bus::stop()}, at least
     *                                           0; then they are cancelled and their messages are requeued. Null for no limit. Set it below the
     *                                           time after which the process would be killed
     * @param CircuitBreaker|null $breaker       pauses the queue after consecutive failures. Set it where all handlers of a queue depend
     *                                           on one service
     * @param int<1, max>|null    $limit         returns after this many messages; null for no limit. For cron jobs and memory leaks of
     *                                           libraries
     * @param bool                $stopWhenEmpty returns when the queue is empty and no message is in flight. For cron jobs and tests. A queue of
     *                                           ordered messages that another process consumes is left to it after 6 seconds
     * @param bool                $signals       whether SIGTERM and SIGINT stop it. Switch it off where the program handles signals itself
     * @param float|null          $stopAfter     returns after this many seconds, above 0 and at most 1e9, with handlers in flight finished as after a signal;
     *                                           null for no limit. For cron jobs and workers that are started anew regularly. The time in which
     *                                           another process consumes a queue of ordered messages counts
     *
     * @throws \ValueError when a number is below 1 or above its maximum, the grace period below 0, or the running time not above 0
     */
    public function __construct(
        public readonly ?int $prefetch = null,
        public readonly ?float $grace = null,
        public readonly ?CircuitBreaker $breaker = null,
        public readonly ?int $limit = null,
        public readonly bool $stopWhenEmpty = false,
        public readonly bool $signals = true,
        public readonly ?float $stopAfter = null,
    ) {
        foreach (['prefetch' => $prefetch, 'limit' => $limit] as $name => $number) {
            if ($number !== null && $number < 1) {
                throw new \ValueError("The {$name} of a consumer must be at least 1, got {$number}");
            }
        }
        if ($prefetch !== null && $prefetch > self::MAX_PREFETCH) {
            throw new \ValueError('The prefetch of a consumer must be at most ' . self::MAX_PREFETCH . ", got {$prefetch}");
        }
        if ($stopAfter !== null && !($stopAfter > 0.0 && $stopAfter <= self::MAX_STOP_AFTER)) {
            throw new \ValueError('A consumer must run for more than 0 and at most ' . self::MAX_STOP_AFTER . ' seconds, got ' . Number::text($stopAfter));
        }
        if ($grace !== null && !($grace >= 0.0)) {
            throw new \ValueError('The grace period of a consumer must be at least 0 seconds, got ' . Number::text($grace));
        }
    }
}
