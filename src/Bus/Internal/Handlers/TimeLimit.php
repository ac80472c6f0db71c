<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Handlers;

use Weft\Bus\Context;
use Weft\Bus\HandlerTimeoutException;
use Weft\Runtime\TimeoutException;
use Weft\Sql\Transaction;

use function Weft\timeout;

/**
 * Cancels a handler that exceeds its timeout.
 *
 * @internal
 */
final class TimeLimit
{
    /**
     * @param \Closure(object, Context, ?Transaction): mixed $invoke
     * @return \Closure(object, Context, ?Transaction): mixed
     */
    public static function around(\Closure $invoke, float $seconds): \Closure
    {
        return static function (object $message, Context $context, ?Transaction $transaction) use ($invoke, $seconds): mixed {
            $inner = null;
            try {
                return timeout($seconds, static function () use ($invoke, $message, $context, $transaction, &$inner): mixed {
                    try {
                        $result = $invoke($message, $context, $transaction);
                        // Deferred statements run within the timeout, too; the commit does not, see Timeout.
                        $transaction?->isOpen() && $transaction->flush();

                        return $result;
                    } catch (\Throwable $thrown) {
                        $inner = $thrown;
                        throw $thrown;
                    }
                });
            } catch (TimeoutException $expired) {
                throw $expired === $inner ? $expired : new HandlerTimeoutException("{$context->handler()}() did not handle message {$context->messageId()} within {$seconds} seconds: {$expired->getMessage()}", $expired);
            }
        };
    }
}
