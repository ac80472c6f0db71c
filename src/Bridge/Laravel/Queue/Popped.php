<?php

declare(strict_types=1);

namespace Weft\Bridge\Laravel\Queue;

use Weft\Bus\Bus;
use Weft\Bus\Header;
use Weft\Bus\SendOptions;
use Weft\Bus\Transport\Consumer;
use Weft\Bus\Transport\Delivery;

/**
 * A job that `pop()` has returned, unacknowledged at its consumer.
 *
 * @internal
 */
final class Popped implements Source
{
    public function __construct(private readonly Bus $bus, private readonly Consumer $consumer, private readonly Delivery $delivery)
    {
    }

    public function id(): string
    {
        return $this->delivery->headers[Header::MESSAGE_ID] ?? '';
    }

    public function acknowledge(): void
    {
        $this->consumer->ack($this->delivery);
    }

    public function replace(QueuedJob $message, ?SendOptions $options): void
    {
        // A crash in between repeats the job, the other way round it would be lost.
        $this->bus->send($message, $options);
        $this->acknowledge();
    }
}
