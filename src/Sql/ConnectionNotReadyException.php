<?php

declare(strict_types=1);

namespace Weft\Sql;

/** The pool had room, but no new connection was ready within the borrow timeout: the server is slow to let clients in. */
final class ConnectionNotReadyException extends SqlException
{
}
