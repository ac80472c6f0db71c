<?php

declare(strict_types=1);

namespace Weft\Pool;

use Weft\UsageError;

/** The lease was returned before; another task may hold its resource. */
final class LeaseReturnedError extends UsageError
{
}
