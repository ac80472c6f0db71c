<?php

declare(strict_types=1);

namespace Weft\Http\Internal;

use Psr\Log\AbstractLogger;

/**
 * Lines on stderr, where there is no logger.
 *
 * @internal
 */
final class ErrorLog extends AbstractLogger
{
    /** @param array<mixed> $context */
    public function log($level, $message, array $context = []): void
    {
        $exception = $context['exception'] ?? null;
        $trace = $exception instanceof \Throwable ? "\n" . $exception->getTraceAsString() : '';
        \file_put_contents('php://stderr', \date('c') . " $level: $message$trace\n");
    }
}
