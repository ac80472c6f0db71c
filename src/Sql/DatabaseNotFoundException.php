<?php

declare(strict_types=1);

namespace Weft\Sql;

/** The server has no database with this name. */
final class DatabaseNotFoundException extends ConnectionException
{
}
