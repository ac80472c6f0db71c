<?php

declare(strict_types=1);

namespace Weft\Bus\Internal;

use Psr\Log\AbstractLogger;
use Psr\Log\LoggerInterface;
use Weft\Internal\Printable;
use Weft\Runtime\CancelledException;

/**
 * The logger of the bus. Its exceptions must not affect the outcome of a message.
 *
 * @internal
 */
final class GuardedLogger extends AbstractLogger
{
    /** Bytes written to PHP's own log at most. */
    private const MAX_BYTES = 8_192;

    public function __construct(private readonly LoggerInterface $logger) {}

    /**
     * @param mixed $level
     * @param string|\Stringable $message
     * @param array<array-key, mixed> $context
     */
    public function log($level, $message, array $context = []): void
    {
        try {
            $this->logger->log($level, $message, $context);
        } catch (CancelledException $cancelled) {
            throw $cancelled;
        } catch (\Throwable $thrown) {
            $error = $context['error'] ?? '';
            $text = "Weft: the logger of the bus failed: {$thrown->getMessage()}; the message was: {$message}" . (\is_string($error) && $error !== '' ? ": {$error}" : '');
            \error_log(Printable::line(Printable::cut($text, self::MAX_BYTES)));
        }
    }
}
