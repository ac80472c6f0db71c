<?php

declare(strict_types=1);

namespace Weft\Sql;

/** A column that requires a value is NULL (SQLSTATE 23502). */
final class NotNullViolationException extends ConstraintViolationException
{
}
