<?php

declare(strict_types=1);

namespace Weft\Sql;

/** The row points at one that does not exist, or is pointed at (SQLSTATE 23503). */
final class ForeignKeyViolationException extends ConstraintViolationException
{
}
