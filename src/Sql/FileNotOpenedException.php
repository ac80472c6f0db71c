<?php

declare(strict_types=1);

namespace Weft\Sql;

/** The SQLite file could not be opened or created, or is no database. */
final class FileNotOpenedException extends ConnectionException
{
}
