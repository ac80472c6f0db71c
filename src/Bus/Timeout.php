<?php

declare(strict_types=1);

namespace Weft\Bus;

/**
 * The longest a handler may take, from its call to the answers of its statements; on a handler method, on its class, or on the
 * message class, the first of these in this order. Without any it is what {@see Bus::connect()} was told.
 *
 * When the time is over the task of the handler is cancelled, with everything it has started: a running SQL statement is
 * cancelled on its server, the transaction is rolled back, and nothing it has sent leaves. The failure is a
 * {@see HandlerTimedOut}. Each retry has the whole time again. A commit that has begun is not cancelled, and code that only
 * computes is interrupted when it next waits for something.
 */
#[\Attribute(\Attribute::TARGET_METHOD | \Attribute::TARGET_CLASS)]
final class Timeout
{
    /** @param float $seconds above 0 */
    public function __construct(public readonly float $seconds)
    {
        if (\is_nan($seconds) || $seconds <= 0.0) {
            throw new \ValueError("The timeout of a handler must be above 0 seconds, got {$seconds}");
        }
    }
}
