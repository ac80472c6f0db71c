<?php

declare(strict_types=1);

namespace Weft\Sql\Internal\Schema;

use Weft\Sql\Driver;

/**
 * A column of a {@see Table}.
 *
 * @internal
 */
final class Column
{
    /** @param string $suffix what follows the type, such as `PRIMARY KEY` or `DEFAULT 0` */
    public function __construct(
        public readonly string $name,
        public readonly Type $type,
        public readonly bool $nullable,
        public readonly string $suffix,
    ) {}

    public function isPrimaryKey(): bool
    {
        return \str_starts_with($this->suffix, 'PRIMARY KEY');
    }

    public function sql(Driver $driver): string
    {
        return "{$this->name} {$this->type->sql($driver)}"
            . ($this->nullable ? '' : ' NOT NULL')
            . ($this->suffix === '' ? '' : " {$this->suffix}");
    }
}
