<?php

declare(strict_types=1);

namespace Weft\Http\Internal;

use Weft\Http\Sessions\StoredSession;

/**
 * A session as it was read from the store.
 *
 * @internal
 */
final class KeptSession
{
    /**
     * @param StoredSession|null $stored null if there is none
     * @param array<string, mixed> $values
     */
    public function __construct(public readonly ?StoredSession $stored, public readonly array $values)
    {
    }
}
