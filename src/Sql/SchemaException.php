<?php

declare(strict_types=1);

namespace Weft\Sql;

/**
 * Weft's tables in the database do not fit this version of Weft, and may not or cannot be created or upgraded. `weft setup` does it.
 */
final class SchemaException extends SqlException
{
}
