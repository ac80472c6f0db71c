<?php

declare(strict_types=1);

namespace Weft\Sql;

/** Two transactions waited for each other (SQLSTATE 40P01). */
final class DeadlockException extends TransactionAbortedException
{
}
