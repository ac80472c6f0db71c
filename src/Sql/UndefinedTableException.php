<?php

declare(strict_types=1);

namespace Weft\Sql;

/** The statement names a table that does not exist (SQLSTATE 42P01). */
final class UndefinedTableException extends InvalidStatementException
{
}
