<?php

declare(strict_types=1);

namespace Weft\Bus;

/** Marks exceptions that would come again: a message whose handler throws one is parked at once, whatever {@see Retry} says. */
interface Unrecoverable extends \Throwable {}
