<?php

declare(strict_types=1);

namespace Weft\Sql;

/** The database gave the transaction up; running it again may succeed (SQLSTATE class 40). */
class TransactionAbortedException extends SqlException
{
}
