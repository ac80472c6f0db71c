<?php

declare(strict_types=1);

namespace Weft\Runtime;

use Weft\Exception;
use Weft\Internal\Documented;

/** Weft was used in a forked child of a process that had started it. Fork first, or start a new process. */
final class ForkedProcessError extends \Error implements Exception
{
    use Documented;

    public function __construct(string $message, public readonly int $parent, public readonly int $child)
    {
        parent::__construct($message);
    }
}
