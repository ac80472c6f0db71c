<?php

declare(strict_types=1);

namespace Weft\Sql;

/** The host name has no address. */
final class HostNotFoundException extends ConnectionException
{
}
