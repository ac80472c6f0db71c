<?php

declare(strict_types=1);

namespace Weft\Bus;

/**
 * Marks exceptions that a retry may resolve, although they are of a query, an `\Error` or a `\LogicException`. A handler that throws one is retried
 * according to {@see BusOptions::$retry}.
 */
interface Recoverable extends \Throwable {}
