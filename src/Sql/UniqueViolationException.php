<?php

declare(strict_types=1);

namespace Weft\Sql;

/** A row with the same unique key exists (SQLSTATE 23505). */
final class UniqueViolationException extends ConstraintViolationException
{
}
