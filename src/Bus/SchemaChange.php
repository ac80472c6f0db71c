<?php

declare(strict_types=1);

namespace Weft\Bus;

/** How the messages of a bus differ from those of a lock file, see {@see Bus::compareSchema()}. */
final class SchemaChange
{
    /**
     * @param list<string> $breaking   a line each; messages that are on their way, or programs that still run, would not be understood
     * @param list<string> $compatible a line each
     * @param string       $lock       the lock file as it would be now
     */
    public function __construct(
        public readonly array $breaking,
        public readonly array $compatible,
        public readonly string $lock,
    ) {}
}
