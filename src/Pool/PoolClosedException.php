<?php

declare(strict_types=1);

namespace Weft\Pool;

/** The pool is closed. */
final class PoolClosedException extends PoolException
{
}
