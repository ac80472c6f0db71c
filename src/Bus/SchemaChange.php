<?php

declare(strict_types=1);

namespace Weft\Bus;

/** The differences between the messages of a bus and a lock file, see {@see Admin::compareSchema()}. */
final class SchemaChange
{
    /**
     * @param list<string> $breaking   one line each; messages in flight or running programs would not be understood
     * @param list<string> $compatible one line each
     * @param string       $lock       the contents of an up-to-date lock file
     */
    public function __construct(
        public readonly array $breaking,
        public readonly array $compatible,
        public readonly string $lock,
    ) {}
}
