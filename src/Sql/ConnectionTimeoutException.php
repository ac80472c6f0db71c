<?php

declare(strict_types=1);

namespace Weft\Sql;

/** The server did not answer within the connect timeout. */
final class ConnectionTimeoutException extends ConnectionException
{
}
