<?php

declare(strict_types=1);

namespace Weft\Sql;

/** The statement was cancelled, timed out, or was ended by an administrator (SQLSTATE 57014). */
final class StatementCancelledException extends SqlException
{
}
