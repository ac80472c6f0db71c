<?php

declare(strict_types=1);

namespace Weft\Pool;

/** The lease was returned before: its resource belongs to somebody else by now. */
final class LeaseReturned extends UsageError
{
}
