<?php

declare(strict_types=1);

namespace Weft\Bus;

/**
 * Marks a public method that brings messages of an older schema version to the next one. It takes and returns the decoded
 * body as arrays. See {@see Bus::upcasters()}.
 *
 * It runs whenever a message is read: from its queue, from a dead letter that is given back, from what waits for its time or its
 * key. What is stored stays as it was. A version without an upcaster is taken for one that later ones can read.
 */
#[\Attribute(\Attribute::TARGET_METHOD | \Attribute::IS_REPEATABLE)]
final class Upcaster
{
    /**
     * @param class-string $message
     * @param int<1, max>  $from the version it takes; it returns the next one
     */
    public function __construct(
        public readonly string $message,
        public readonly int $from,
    ) {
        if ($from < 1) {
            throw new \ValueError("The version of an upcaster must be at least 1, got {$from}");
        }
    }
}
