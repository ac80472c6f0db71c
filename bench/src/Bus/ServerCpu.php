<?php

declare(strict_types=1);

namespace Weft\Bench\Bus;

/** CPU seconds of the two servers. */
final class ServerCpu
{
    public function __construct(public readonly float $broker, public readonly float $database)
    {
    }

    public function since(self $start): self
    {
        return new self($this->broker - $start->broker, $this->database - $start->database);
    }
}
