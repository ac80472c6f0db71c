<?php

declare(strict_types=1);

namespace Weft\EventSourcing;

use Weft\Bus\Recoverable;

/** The stream was changed since it was read: nothing was stored. A handler that throws it is retried. */
final class StreamConflictException extends EventSourcingException implements Recoverable {}
