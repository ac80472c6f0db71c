<?php

declare(strict_types=1);

namespace Weft\Http;

use Weft\Http\Sessions\StoredSession;

/**
 * Where sessions are kept, see {@see Sessions}. Ids are 64 hexadecimal digits: a hash of what the cookie has, so that whoever reads the
 * store cannot take a session over.
 */
interface SessionStore
{
    /** Null if there is none, or if it has expired. */
    public function read(string $id): ?StoredSession;

    /**
     * Keeps a session, if it still has the version that was read.
     *
     * @param string $data any text
     * @param int $version of `read()`; 0 for a session that must not be there yet
     * @param float $seconds until it expires, above 0
     *
     * @return bool whether it was kept; false if another request was first
     */
    public function write(string $id, string $data, int $version, float $seconds): bool;

    /** It is no error if there is none. */
    public function delete(string $id): void;

    /** Deletes expired sessions, if the store does not do so itself. */
    public function prune(): void;
}
