<?php

declare(strict_types=1);

namespace Weft\Bus;

/** Marks exceptions that a retry cannot resolve: the message is dead-lettered immediately, regardless of {@see Retry}. */
interface Unrecoverable extends \Throwable {}
