<?php

declare(strict_types=1);

namespace Weft\Bus;

/** Where large bodies are kept, see {@see ClaimCheck}. What it throws when a body is put fails the sending of its message. */
interface ClaimStore
{
    /**
     * The body is safe when this returns.
     *
     * @param string $id unique; 1 to 64 bytes
     */
    public function put(string $id, string $body): void;

    /** @return string|null null when there is none of that id. The id comes from a message and may be anything */
    public function get(string $id): ?string;

    /**
     * Deletes what was put longer ago.
     *
     * @param float $seconds
     * @return int how many
     */
    public function prune(float $seconds): int;
}
