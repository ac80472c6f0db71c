<?php

declare(strict_types=1);

namespace Weft\Log\Internal;

use Psr\Log\AbstractLogger;
use Psr\Log\LoggerInterface;
use Weft\Internal\ErrorLog;
use Weft\Log\StreamLogger;
use Weft\Runtime\Internal\Scheduler;

/**
 * A logger whose exceptions change nothing: not the outcome of a message, not the answer to a request, and they do not end the event loop, on
 * which servers log. PHP's own log receives the record instead.
 *
 * @internal
 */
final class GuardedLogger extends AbstractLogger
{
    private function __construct(private readonly LoggerInterface $logger) {}

    /** @param LoggerInterface|null $logger by default the one of the environment */
    public static function around(?LoggerInterface $logger): self
    {
        return $logger instanceof self ? $logger : new self($logger ?? StreamLogger::fromEnvironment());
    }

    /**
     * @param mixed $level
     * @param string|\Stringable $message
     * @param array<array-key, mixed> $context
     */
    public function log($level, $message, array $context = []): void
    {
        try {
            $this->logger->log($level, $message, $context);
        } catch (\Throwable $thrown) {
            if (Scheduler::isCancelledBy($thrown)) {
                throw $thrown;
            }
            $record = Message::of((string) $message, $context)->text;
            ErrorLog::write('the logger ', $this->logger::class, ' failed: ', $thrown->getMessage(), '; the record was: ', $record);
        }
    }
}
