<?php

declare(strict_types=1);

namespace Weft\Pool;

/** The factory threw, returned null, took too long or was cancelled; what it threw is the previous exception. */
final class FactoryException extends PoolException
{
}
