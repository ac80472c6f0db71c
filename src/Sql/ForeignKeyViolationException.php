<?php

declare(strict_types=1);

namespace Weft\Sql;

/** The row references a row that does not exist, or is still referenced (SQLSTATE 23503). */
final class ForeignKeyViolationException extends ConstraintViolationException
{
}
