<?php

declare(strict_types=1);

namespace Weft\Bus;

/** A command was sent for which no queue is declared. */
final class UnroutableMessageException extends BusException
{
    /** @internal */
    public static function of(string $type, string $broker, ?\Throwable $previous = null): self
    {
        return new self("No queue in {$broker} is declared for commands of type \"{$type}\"; declare() or consume() of the bus that handles them declares one", $previous);
    }
}
