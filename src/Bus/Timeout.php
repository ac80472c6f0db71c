<?php

declare(strict_types=1);

namespace Weft\Bus;

use Weft\Internal\Number;

/**
 * Limits how long a handler may run, from its call to the results of its statements; on a handler method, on its class, or on the
 * message class, the first of these in this order. The default is the timeout passed to {@see Bus::connect()}.
 *
 * When the time is over, the handler's task and everything it has started are cancelled: a running SQL statement is cancelled on its
 * server, the transaction is rolled back, and nothing that the handler sent is published. The failure is a {@see HandlerTimeoutException}. Each
 * retry has the full time again. A commit that has begun is not cancelled, and code that only computes is interrupted at its next wait.
 */
#[\Attribute(\Attribute::TARGET_METHOD | \Attribute::TARGET_CLASS)]
final class Timeout
{
    /** @param float $seconds above 0 */
    public function __construct(public readonly float $seconds)
    {
        if (\is_nan($seconds) || $seconds <= 0.0) {
            throw new \ValueError('The timeout of a handler must be above 0 seconds, got ' . Number::text($seconds));
        }
    }
}
