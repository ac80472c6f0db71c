<?php

declare(strict_types=1);

namespace Weft\Sql;

/** The database rolled the transaction back; it may succeed when it is repeated (SQLSTATE class 40). */
class TransactionAbortedException extends SqlException
{
}
