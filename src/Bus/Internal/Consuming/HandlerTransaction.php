<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Consuming;

use Weft\Bus\Internal\ExceptionChain;
use Weft\Bus\TransactionFinishedException;
use Weft\Sql\Database;
use Weft\Sql\Transaction;
use Weft\UsageError;

/**
 * The transactions of handlers. Only the bus ends them: the inbox would take a message whose handler commits for handled, whatever happens then.
 *
 * @internal
 */
final class HandlerTransaction
{
    /** @param string $handler `Class::method` */
    public static function begin(Database $database, string $handler): Transaction
    {
        $transaction = $database->begin();
        $transaction->reserve(static fn(string $call): \Throwable => new TransactionFinishedException("{$handler}() called {$call}() on its Transaction; the bus ends the transactions of handlers"));

        return $transaction;
    }

    /**
     * Why a message counts as handled although its handler has failed: a statement has committed the transaction with its inbox row, as a stored
     * procedure can in MySQL. Null when the message was handled before.
     */
    public static function endedBy(\Throwable $thrown, string $handler): ?TransactionFinishedException
    {
        foreach (ExceptionChain::of($thrown) as $error) {
            if ($error instanceof UsageError) {
                return new TransactionFinishedException("{$handler}() ended its Transaction: {$error->getMessage()}", previous: $thrown);
            }
        }

        return null;
    }
}
