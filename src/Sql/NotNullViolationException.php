<?php

declare(strict_types=1);

namespace Weft\Sql;

/** A column that needs a value got none (SQLSTATE 23502). */
final class NotNullViolationException extends ConstraintViolationException
{
}
