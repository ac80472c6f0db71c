<?php

declare(strict_types=1);

namespace Weft\Bus;

/** Is told what happens to each message, for metrics; runs in the task that handled it, so it should be quick. */
interface Observer
{
    /** @param float $seconds from the start of decoding to the acknowledgement */
    public function handled(string $type, float $seconds): void;

    /** @param bool $parked false when not even parking succeeded, so that the message went back to its queue */
    public function failed(string $type, \Throwable $error, bool $parked): void;
}
