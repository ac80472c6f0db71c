<?php

declare(strict_types=1);

namespace Weft\Pool;

use Weft\UsageError;

/** The lease was returned before: its resource belongs to somebody else by now. */
final class LeaseReturnedError extends UsageError
{
}
