<?php

declare(strict_types=1);

namespace Weft\Sql;

/** The statement names a column that does not exist (SQLSTATE 42703). */
final class UndefinedColumnException extends InvalidStatementException
{
}
