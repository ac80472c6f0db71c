<?php

declare(strict_types=1);

namespace Weft\Bus;

/** Marks exceptions that a retry may resolve. A handler that throws one is retried according to the bus's default {@see Retry}. */
interface Recoverable extends \Throwable {}
