<?php

declare(strict_types=1);

namespace Weft\Sql;

/**
 * A hook of the pool threw, timed out, or left a statement or transaction unfinished. The connection is closed; the exception of
 * the hook is the previous exception.
 */
final class HookException extends SqlException
{
}
