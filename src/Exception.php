<?php

declare(strict_types=1);

namespace Weft;

/** Everything Weft throws, errors of the caller included. */
interface Exception extends \Throwable
{
}
