<?php

declare(strict_types=1);

namespace Weft\Bus;

/** A delayed message with this {@see SendOptions::$id} is waiting already; nothing was stored. */
final class AlreadyScheduledException extends BusException implements Unrecoverable
{
    /** @internal */
    public static function of(string $id, ?\Throwable $cause = null): self
    {
        return new self("A delayed message with the id \"{$id}\" is waiting already", $cause);
    }
}
