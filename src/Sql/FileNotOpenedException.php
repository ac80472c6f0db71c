<?php

declare(strict_types=1);

namespace Weft\Sql;

/** The SQLite file cannot be opened or created, or is not a database. */
final class FileNotOpenedException extends ConnectionException
{
}
