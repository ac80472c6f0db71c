<?php

declare(strict_types=1);

namespace Weft\Sql;

/** The pool has room, but no new connection was ready within the borrow timeout. */
final class ConnectionNotReadyException extends SqlException
{
}
