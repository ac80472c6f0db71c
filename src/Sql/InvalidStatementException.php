<?php

declare(strict_types=1);

namespace Weft\Sql;

/** The statement is invalid, whatever the data (SQLSTATE class 42). */
class InvalidStatementException extends SqlException
{
}
