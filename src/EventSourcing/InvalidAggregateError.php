<?php

declare(strict_types=1);

namespace Weft\EventSourcing;

use Weft\Internal\Documented;

/** A class is not a valid aggregate. */
final class InvalidAggregateError extends \Error implements \Weft\Exception
{
    use Documented;
}
