<?php

declare(strict_types=1);

namespace Weft\Pool;

use Weft\UsageError;

/** The task that wants to close the pool holds one of its resources itself, so that would never end. */
final class StillBorrowedError extends UsageError
{
}
