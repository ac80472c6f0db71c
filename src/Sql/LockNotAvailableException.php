<?php

declare(strict_types=1);

namespace Weft\Sql;

/** A lock was not available in time (SQLSTATE 55P03; SQLite: busy). */
final class LockNotAvailableException extends SqlException
{
}
