<?php

declare(strict_types=1);

namespace Weft\Sql;

/** The server has no database of that name. */
final class DatabaseNotFoundException extends ConnectionException
{
}
