<?php

declare(strict_types=1);

namespace Weft\EventSourcing;

use Weft\Bus\Recoverable;

/** Somebody else has appended to the stream since it was read: nothing has taken effect. A handler that throws it is tried again. */
final class StreamConflict extends EventSourcingException implements Recoverable {}
