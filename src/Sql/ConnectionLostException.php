<?php

declare(strict_types=1);

namespace Weft\Sql;

/** The connection broke after the statement was sent: whether it took effect is unknown. */
class ConnectionLostException extends SqlException
{
}
