<?php

declare(strict_types=1);

namespace Weft\Pool;

/** Nothing came back within the borrow timeout; the message names the holders. */
final class PoolExhaustedException extends PoolException
{
}
