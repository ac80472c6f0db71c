<?php

declare(strict_types=1);

namespace Weft\Bus;

/**
 * Marks a public method that converts messages of an older schema version to the next one. It takes and returns the decoded body as an
 * array. See {@see Bus::handlers()}.
 *
 * It runs whenever a message is decoded, wherever the message was stored. Stored messages are not changed. A version without an
 * upcaster is assumed to be readable by the next one.
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
