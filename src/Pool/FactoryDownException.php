<?php

declare(strict_types=1);

namespace Weft\Pool;

/** Refused at once: the factory failed, and its next attempt is not due yet. */
final class FactoryDownException extends PoolException
{
}
