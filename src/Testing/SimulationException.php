<?php

declare(strict_types=1);

namespace Weft\Testing;

use Weft\Internal\Documented;

/** A run of a simulation threw an exception that is not a failed assertion. It is the previous exception; the message has the seed. */
final class SimulationException extends \RuntimeException implements \Weft\Exception
{
    use Documented;
}
