<?php

declare(strict_types=1);

namespace Weft\Sql\Internal\Schema;

use Weft\Sql\Driver;

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
     * @param string                 $where   which rows it has; empty for all, which MySQL's have anyway
     */
    public function __construct(
        public readonly string $name,
        public readonly array $columns,
        public readonly bool $unique = false,
        public readonly string $method = '',
        public readonly string $where = '',
    ) {}

    public function on(): string
    {
        return \implode(', ', $this->columns);
    }

    /** The statement that creates it; not in MySQL, which has no CREATE INDEX IF NOT EXISTS. */
    public function create(string $table, Driver $driver): string
    {
        $using = $this->method !== '' && $driver === Driver::Postgres ? " USING {$this->method}" : '';

        return "CREATE INDEX IF NOT EXISTS {$this->name} ON {$table}{$using} ({$this->on()})" . ($this->where === '' ? '' : " WHERE {$this->where}");
    }
}
