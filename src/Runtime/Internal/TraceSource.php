<?php

declare(strict_types=1);

namespace Weft\Runtime\Internal;

use Weft\Runtime\Trace;

/**
 * Creates its span on first use, so that handlers without traces do not pay for one.
 *
 * @internal
 */
interface TraceSource
{
    /** The same at every call. */
    public function trace(): Trace;
}
