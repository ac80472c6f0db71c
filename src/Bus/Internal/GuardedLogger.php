<?php

declare(strict_types=1);

namespace Weft\Bus\Internal;

use Psr\Log\AbstractLogger;
use Psr\Log\LoggerInterface;
use Weft\Runtime\CancelledException;

/**
 * The logger the bus was given. What it throws must not change what becomes of a message.
 *
 * @internal
 */
final class GuardedLogger extends AbstractLogger
{
    public function __construct(private readonly LoggerInterface $logger) {}

    /**
     * @param mixed $level
     * @param string|\Stringable $message
     * @param array<string, mixed> $context
     */
    public function log($level, $message, array $context = []): void
    {
        try {
            $this->logger->log($level, $message, $context);
        } catch (CancelledException $cancelled) {
            throw $cancelled;
        } catch (\Throwable $thrown) {
            $error = $context['error'] ?? '';
            \error_log("Weft: the logger of the bus failed: {$thrown->getMessage()}; it was told of: {$message}" . ($error === '' ? '' : ": {$error}"));
        }
    }
}
