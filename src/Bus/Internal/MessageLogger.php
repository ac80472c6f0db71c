<?php

declare(strict_types=1);

namespace Weft\Bus\Internal;

use Psr\Log\AbstractLogger;
use Psr\Log\LoggerInterface;
use Weft\Bus\Context;

/**
 * Adds to each record which message is handled, and in which span of which trace.
 *
 * @internal
 */
final class MessageLogger extends AbstractLogger
{
    /** @var array<string, string>|null */
    private ?array $fields = null;

    public function __construct(
        private readonly LoggerInterface $logger,
        private readonly Context $context,
    ) {}

    /**
     * @param mixed $level
     * @param string|\Stringable $message
     * @param array<array-key, mixed> $context wins where it has a field of the same name
     */
    public function log($level, $message, array $context = []): void
    {
        $this->logger->log($level, (string) $message, $context + ($this->fields ??= $this->fields()));
    }

    /** @return array<string, string> */
    private function fields(): array
    {
        $trace = $this->context->trace();

        return [
            'trace_id' => $trace->traceId(),
            'span_id' => $trace->spanId(),
            'message_class' => $this->context->messageClass(),
            'message_id' => $this->context->messageId(),
            'handler' => $this->context->handler(),
            'queue' => $this->context->queue,
        ];
    }
}
