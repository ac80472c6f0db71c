<?php

declare(strict_types=1);

namespace Weft\Bus;

/** Marks exceptions that may not come again: a handler that throws one is tried again by the bus's default {@see Retry}. */
interface Recoverable extends \Throwable {}
