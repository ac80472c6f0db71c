<?php

declare(strict_types=1);

namespace Weft\Pool;

/** The caller broke the rules of a pool or a lease. */
class UsageError extends \Error implements \Weft\Exception
{
}
