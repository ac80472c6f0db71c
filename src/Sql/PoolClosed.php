<?php

declare(strict_types=1);

namespace Weft\Sql;

/** The database was closed. */
final class PoolClosed extends SqlException
{
}
