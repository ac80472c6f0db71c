<?php

declare(strict_types=1);

namespace Weft\Sql;

/** The statement is invalid for any data (SQLSTATE class 42). */
class InvalidStatementException extends SqlException
{
}
