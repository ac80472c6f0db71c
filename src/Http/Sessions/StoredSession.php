<?php

declare(strict_types=1);

namespace Weft\Http\Sessions;

/** A session as a store has it. */
final class StoredSession
{
    /** @param int $version counts the writes, from 1 */
    public function __construct(public readonly string $data, public readonly int $version)
    {
    }
}
