<?php

declare(strict_types=1);

namespace Weft\Runtime;

use Weft\Runtime\Internal\Cancellation;

/**
 * Thrown at a suspension point of a task that was cancelled, and by `await()` on such a task.
 *
 * Clean up in `finally` and do not catch it. A cancellation is thrown once: clean-up code may suspend again. The previous
 * exception is the cause, where there is one, such as the failure of a sibling, or what the cancellation left undecided.
 */
final class CancelledException extends RuntimeException
{
    /** @internal */
    public function __construct(string $message, public readonly Cancellation $cancellation, ?\Throwable $previous = null)
    {
        parent::__construct($message, 0, $previous ?? $cancellation->cause);
    }
}
