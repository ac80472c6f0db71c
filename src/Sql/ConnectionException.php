<?php

declare(strict_types=1);

namespace Weft\Sql;

/** A connection could not be made. Nothing was sent. */
class ConnectionException extends SqlException
{
}
