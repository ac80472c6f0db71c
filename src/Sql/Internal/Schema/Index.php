<?php

declare(strict_types=1);

namespace Weft\Sql\Internal\Schema;

/**
 * An index of a {@see Table}.
 *
 * @internal
 */
final class Index
{
    /**
     * @param string                 $name    begins with the table's name
     * @param non-empty-list<string> $columns
     * @param string                 $method  of PostgreSQL, such as `brin`; empty for the default
     */
    public function __construct(
        public readonly string $name,
        public readonly array $columns,
        public readonly bool $unique = false,
        public readonly string $method = '',
    ) {}

    public function on(): string
    {
        return \implode(', ', $this->columns);
    }
}
