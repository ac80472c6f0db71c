<?php

declare(strict_types=1);

namespace Weft\Bridge\Laravel\Queue;

use Weft\Bus\Context;
use Weft\Bus\SendOptions;

/**
 * A job in the hands of {@see Handler}: the bus acknowledges it, and publishes what replaces it, when the handler returns.
 *
 * @internal
 */
final class Handled implements Source
{
    public function __construct(private readonly Context $context)
    {
    }

    public function id(): string
    {
        return $this->context->messageId();
    }

    public function acknowledge(): void
    {
    }

    public function replace(QueuedJob $message, ?SendOptions $options): void
    {
        $this->context->send($message, $options);
    }
}
