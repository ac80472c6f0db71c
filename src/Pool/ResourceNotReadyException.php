<?php

declare(strict_types=1);

namespace Weft\Pool;

/** There was room, but the factory made nothing within the borrow timeout. */
final class ResourceNotReadyException extends PoolException
{
}
