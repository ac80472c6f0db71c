<?php

declare(strict_types=1);

namespace Weft\Sql;

/** A CHECK condition is false for the row (SQLSTATE 23514). */
final class CheckViolationException extends ConstraintViolationException
{
}
