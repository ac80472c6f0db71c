<?php

declare(strict_types=1);

namespace Weft\Pool;

/** Refused at once: the last attempts of the factory have failed, and the next one is not due yet. */
final class FactoryDownException extends PoolException
{
}
