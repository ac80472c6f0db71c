<?php

declare(strict_types=1);

namespace Weft\Runtime;

/**
 * The work given to `Weft\timeout()` did not end in time. It was cancelled and has ended since.
 *
 * The previous exception says what the cancellation left undecided, such as `Weft\Sql\TransactionOutcomeUnknownException`.
 */
final class TimeoutException extends RuntimeException
{
    /**
     * @param float $seconds the limit that was exceeded
     * @param string $task the task that called `timeout()`, as in `#7 sync`
     */
    public function __construct(string $message, public readonly float $seconds, public readonly string $task, ?\Throwable $previous = null)
    {
        parent::__construct($message, 0, $previous);
    }
}
