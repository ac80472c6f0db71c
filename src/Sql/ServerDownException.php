<?php

declare(strict_types=1);

namespace Weft\Sql;

/** Refused at once: connecting failed, and the next attempt is not due yet. */
final class ServerDownException extends ConnectionException
{
}
