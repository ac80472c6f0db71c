<?php

declare(strict_types=1);

namespace Weft\Pool;

/** The factory threw, returned null, timed out or was cancelled. Its exception is the previous exception. */
final class FactoryException extends PoolException
{
}
