<?php

declare(strict_types=1);

namespace Weft\Runtime;

use Weft\Exception;

/** The operating system refused what the event loop needs, such as a file descriptor. */
final class RuntimeFailed extends \RuntimeException implements Exception
{
}
