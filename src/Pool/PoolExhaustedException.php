<?php

declare(strict_types=1);

namespace Weft\Pool;

/** No resource was returned within the borrow timeout. The message names the holders. */
final class PoolExhaustedException extends PoolException
{
}
