<?php

declare(strict_types=1);

namespace Weft\Runtime\Internal;

use Weft\Runtime\Trace;

/**
 * What has a span once somebody asks for it, so that handlers without traces do not pay for one.
 *
 * @internal
 */
interface TraceSource
{
    /** The same at every call. */
    public function trace(): Trace;
}
