<?php

declare(strict_types=1);

namespace Weft\Sql;

/** The database cannot parse the statement (SQLSTATE 42601). */
final class SyntaxErrorException extends InvalidStatementException
{
}
