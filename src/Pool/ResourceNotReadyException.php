<?php

declare(strict_types=1);

namespace Weft\Pool;

/** The pool has room, but the factory, or the hook `borrowed`, did not finish within the borrow timeout. */
final class ResourceNotReadyException extends PoolException
{
}
