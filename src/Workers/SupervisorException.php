<?php

declare(strict_types=1);

namespace Weft\Workers;

use Weft\Internal\Documented;

/** A supervisor cannot do its work: the message names the system call's reason. */
final class SupervisorException extends \RuntimeException implements \Weft\Exception
{
    use Documented;
}
