<?php

declare(strict_types=1);

namespace Weft\Sql;

/** A row breaks a rule of the schema (SQLSTATE class 23). */
class ConstraintViolationException extends SqlException
{
}
