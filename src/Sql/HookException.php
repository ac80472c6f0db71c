<?php

declare(strict_types=1);

namespace Weft\Sql;

/** A hook of the pool threw, which is the previous exception, took too long, or left something unfinished. The connection is closed. */
final class HookException extends SqlException
{
}
