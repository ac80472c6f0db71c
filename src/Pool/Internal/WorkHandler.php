<?php

declare(strict_types=1);

namespace Weft\Pool\Internal;

use Weft\Runtime\Internal\Scheduler;

/**
 * Handles the work that a pool of the extension has for PHP.
 *
 * @internal
 */
interface WorkHandler
{
    /** Handles pending work: each item in a task of its own on the given scheduler, or at once without one. */
    public function handleWork(?Scheduler $scheduler = null): void;
}
