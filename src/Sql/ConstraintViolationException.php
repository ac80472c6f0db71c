<?php

declare(strict_types=1);

namespace Weft\Sql;

/** A row violates a constraint (SQLSTATE class 23). */
class ConstraintViolationException extends SqlException
{
}
