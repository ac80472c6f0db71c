<?php

declare(strict_types=1);

namespace Weft\Sql;

/** Transactions waited for each other, and the database aborted this one (SQLSTATE 40P01). */
final class DeadlockException extends TransactionAbortedException
{
}
