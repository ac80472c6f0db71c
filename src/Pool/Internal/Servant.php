<?php

declare(strict_types=1);

namespace Weft\Pool\Internal;

use Weft\Runtime\Internal\Scheduler;

/**
 * Does in PHP what a pool of the extension asks for.
 *
 * @internal
 */
interface Servant
{
    /** Does what waits: in tasks of their own on the loop given, without one at once. */
    public function serve(?Scheduler $scheduler = null): void;
}
