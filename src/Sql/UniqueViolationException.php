<?php

declare(strict_types=1);

namespace Weft\Sql;

/** The row exists already (SQLSTATE 23505). */
final class UniqueViolationException extends ConstraintViolationException
{
}
