<?php

declare(strict_types=1);

namespace Weft\Bus;

use Weft\Bus\Internal\ExceptionChain;
use Weft\Internal\Number;

/**
 * How often and when a failed handler is retried before its message is dead-lettered.
 *
 * On a handler method, on its class, or on the message class. The first one in this order whose `$on` matches the exception applies.
 * Without any, {@see BusOptions::$retry} applies, by default three immediate and five delayed retries, to every exception except mistakes in
 * the program or the data, which fail again: `\Error`, `\LogicException`, SQL that the database cannot execute, and values that it refuses
 * (constraints other than foreign keys) are dead-lettered immediately. So is {@see Unrecoverable} in any case, and a message that cannot be
 * decoded or has no handler.
 *
 * With all retries a handler is called `(1 + immediate) × (1 + delayed)` times. A message that waits for a delayed retry does not occupy the
 * prefetch: a copy with the same id is delivered later, only to the handlers that failed.
 */
#[\Attribute(\Attribute::TARGET_METHOD | \Attribute::TARGET_CLASS | \Attribute::IS_REPEATABLE)]
final class Retry
{
    /**
     * @param int<0, max>              $immediate  immediate retries, each in its own transaction. Raise it where conflicts in the database are
     *                                             frequent
     * @param int<0, max>              $delayed    delayed rounds after that, each with its immediate retries. Raise it for outages that last longer
     * @param float                    $delay      seconds before the first round, at least 0 and below 1e10. Change it to the time in which a failure usually passes
     * @param float                    $multiplier factor from one round to the next, at least 1. Set 1 for rounds at equal distances
     * @param float                    $maxDelay   longest delay in seconds, at least 0 and below 1e10. Lower it where messages must not wait long after an outage
     * @param float                    $jitter     0 to 1: the part of the delay that is random, so that messages that failed together
     *                                             are not retried together. Lower it where the time of a round must be known
     * @param list<class-string<\Throwable>> $on   exceptions it applies to, directly or as a previous exception; empty: all. List those that pass
     *                                             by themselves
     */
    public function __construct(
        public readonly int $immediate = 0,
        public readonly int $delayed = 0,
        public readonly float $delay = 1.0,
        public readonly float $multiplier = 2.0,
        public readonly float $maxDelay = 60.0,
        public readonly float $jitter = 0.25,
        public readonly array $on = [],
    ) {
        if ($immediate < 0 || $delayed < 0) {
            throw new \ValueError("The numbers of retries must be at least 0, got {$immediate} immediate and {$delayed} delayed");
        }
        if (\is_nan($delay + $maxDelay + $multiplier + $jitter) || $delay < 0.0 || $delay >= 1e10 || $maxDelay < 0.0 || $maxDelay >= 1e10 || $multiplier < 1.0 || $jitter < 0.0 || $jitter > 1.0) {
            throw new \ValueError('A retry must have a delay and maxDelay of at least 0 and below 1e10 seconds, a multiplier of at least 1 and a jitter of 0 to 1, got ' . Number::text($delay) . ', ' . Number::text($maxDelay) . ', ' . Number::text($multiplier) . ' and ' . Number::text($jitter));
        }
        /** @var string $class */
        foreach ($on as $class) {
            \is_a($class, \Throwable::class, true) || \interface_exists($class) || throw new \ValueError("Cannot retry on \"{$class}\": it is not an exception class");
        }
    }

    /** Whether it applies to an exception or to one of its previous exceptions. */
    public function matches(\Throwable $thrown): bool
    {
        foreach (ExceptionChain::of($thrown) as $error) {
            foreach ($this->on as $class) {
                if ($error instanceof $class) {
                    return true;
                }
            }
        }

        return $this->on === [];
    }

    /**
     * The delay before a round, in seconds.
     *
     * @param int<1, max> $round  the first is 1
     * @param float       $random from 0 to 1
     */
    public function delayFor(int $round, float $random): float
    {
        $delay = \min($this->maxDelay, $this->delay * $this->multiplier ** ($round - 1));

        return \min($this->maxDelay, $delay * (1.0 + $this->jitter * ($random - 0.5)));
    }
}
