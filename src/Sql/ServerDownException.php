<?php

declare(strict_types=1);

namespace Weft\Sql;

/** Refused at once: the last attempts to connect have failed, and the next one is not due yet. */
final class ServerDownException extends ConnectionException
{
}
