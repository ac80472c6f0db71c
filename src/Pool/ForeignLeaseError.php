<?php

declare(strict_types=1);

namespace Weft\Pool;

use Weft\UsageError;

/** The lease belongs to another pool. */
final class ForeignLeaseError extends UsageError
{
}
