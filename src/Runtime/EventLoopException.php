<?php

declare(strict_types=1);

namespace Weft\Runtime;

/** The operating system refused a resource that the event loop needs, such as a file descriptor. */
final class EventLoopException extends RuntimeException
{
}
