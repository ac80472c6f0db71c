<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Consuming;

use Psr\Log\LoggerInterface;
use Weft\Bus\Context;
use Weft\Bus\Header;
use Weft\Bus\Transport\Delivery;
use Weft\Runtime\Internal\Coroutine;
use Weft\Runtime\Internal\InterruptedWork;

/**
 * The messages of one consumer, which an `exit()` or a fatal error of a handler interrupts.
 *
 * @internal
 */
final class MessagesInFlight implements InterruptedWork
{
    /** @param \Closure(Coroutine, Delivery): bool $handles whether the task handles this message of the consumer */
    public function __construct(
        private readonly string $queue,
        private readonly LoggerInterface $logger,
        private readonly \Closure $handles,
    ) {}

    public function describe(Coroutine $task): ?string
    {
        $context = $task->trace;
        if ($context instanceof Context) {
            return $context->queue === $this->queue ? "Message {$context->type()} {$context->messageId()} in {$context->handler()}" : null;
        }
        $delivery = $task->args[0] ?? null;

        // The handler has entered a span of its own.
        return $delivery instanceof Delivery && ($this->handles)($task, $delivery) ? "Message {$delivery->type} " . ($delivery->headers[Header::MESSAGE_ID] ?? '') : null;
    }

    public function outcome(): string
    {
        return "messages of queue \"{$this->queue}\" in flight are redelivered";
    }

    public function logger(): LoggerInterface
    {
        return $this->logger;
    }
}
