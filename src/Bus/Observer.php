<?php

declare(strict_types=1);

namespace Weft\Bus;

/** Observes the outcome of each message, for metrics. The methods run in the task that handled the message and should return quickly. */
interface Observer
{
    /** @param float $seconds from the start of decoding to the acknowledgement */
    public function succeeded(string $type, float $seconds): void;

    /** @param bool $deadLettered whether the message was moved to the dead-letter queue */
    public function failed(string $type, \Throwable $error, bool $deadLettered): void;
}
