<?php

declare(strict_types=1);

namespace Weft\Sql;

/** The statement was ended by a cancellation, a time-out or an administrator (SQLSTATE 57014). */
final class StatementCancelledException extends SqlException
{
}
