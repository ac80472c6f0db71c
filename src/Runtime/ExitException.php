<?php

declare(strict_types=1);

namespace Weft\Runtime;

/**
 * Code in a realm has called `exit()` or `die()`, which end what the realm runs and not the process.
 *
 * A request that an {@see \Weft\Http\ApplicationPool} serves ends with what it has printed, as under PHP-FPM, and never fails with this.
 * {@see \Weft\Http\ApplicationPool::with()} and a task that a request has started do.
 */
final class ExitException extends RuntimeException
{
}
