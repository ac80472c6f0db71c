<?php

declare(strict_types=1);

namespace Weft\Bus;

/** Is told what happens to each message, for metrics; runs in the task that handled it, so it should be quick. */
interface Observer
{
    /** @param float $seconds from the start of decoding to the acknowledgement */
    public function succeeded(string $type, float $seconds): void;

    /** @param bool $deadLettered false when not even parking succeeded, so that the message went back to its queue */
    public function failed(string $type, \Throwable $error, bool $deadLettered): void;
}
