<?php

declare(strict_types=1);

namespace Weft\Runtime;

/** The operating system refused what the event loop needs, such as a file descriptor. */
final class EventLoopException extends RuntimeException
{
}
