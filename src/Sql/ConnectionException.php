<?php

declare(strict_types=1);

namespace Weft\Sql;

/** Connecting failed. No statement was sent. */
class ConnectionException extends SqlException
{
}
