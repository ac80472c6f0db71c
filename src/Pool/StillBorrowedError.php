<?php

declare(strict_types=1);

namespace Weft\Pool;

use Weft\UsageError;

/** The task that closes the pool holds one of its resources, so closing would never end. */
final class StillBorrowedError extends UsageError
{
}
