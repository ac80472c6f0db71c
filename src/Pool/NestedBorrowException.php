<?php

declare(strict_types=1);

namespace Weft\Pool;

/** A deadlock, detected at once: every resource is held by a task that waits for another one. */
final class NestedBorrowException extends PoolException
{
}
