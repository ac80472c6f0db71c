<?php

declare(strict_types=1);

namespace Weft\Bus;

/** A store for large bodies, see {@see ClaimCheck}. An exception from put() makes sending the message fail. */
interface ClaimStore
{
    /**
     * Returns when the body is stored durably.
     *
     * @param string $id unique; 1 to 64 bytes
     */
    public function put(string $id, string $body): void;

    /**
     * Null is final: the message is dead-lettered. Throw an exception when the store cannot tell at present, {@see ClaimUnavailableException} for
     * instance; then the message is retried.
     *
     * @return string|null null when no body has this id. The id comes from a message and may be any string
     */
    public function get(string $id): ?string;

    /**
     * Deletes bodies that were stored more than `$seconds` ago.
     *
     * @param float $seconds
     * @return int number of deleted bodies
     */
    public function prune(float $seconds): int;
}
