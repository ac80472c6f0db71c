<?php

declare(strict_types=1);

namespace Weft\Pool;

/** Everything is held by tasks that wait for another one: no wait could end this. Found at once. */
final class NestedBorrowException extends PoolException
{
}
