<?php

declare(strict_types=1);

namespace Weft\Pool;

/** The lease is of another pool. */
final class ForeignLease extends UsageError
{
}
