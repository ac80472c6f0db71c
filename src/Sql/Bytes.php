<?php

declare(strict_types=1);

namespace Weft\Sql;

/**
 * A parameter that is binary even if it happens to be valid UTF-8: `bytea` in PostgreSQL, BLOB in SQLite.
 *
 * A string that is not valid UTF-8 is sent as binary without it.
 */
final class Bytes
{
    public function __construct(public readonly string $bytes)
    {
    }
}
