<?php

declare(strict_types=1);

namespace Weft\Sql;

/** A column that needs a value got none (SQLSTATE 23502). */
final class NotNullViolation extends ConstraintViolation
{
}
