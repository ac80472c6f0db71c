<?php

declare(strict_types=1);

namespace Weft\Sql\Internal\Schema;

use Weft\Sql\Driver;

/**
 * A table of a {@see Component} as its current version has it. Each method returns a changed copy.
 *
 * @internal
 */
final class Table
{
    /** @var list<Column> */
    public array $columns = [];

    /** @var list<string> empty where a column has it in its suffix */
    public array $primaryKey = [];

    /** @var list<Index> */
    public array $indexes = [];

    /** The text after the columns, such as `WITHOUT ROWID` or storage parameters. */
    public string $suffix = '';

    /** @var list<string> statements that run once after the table was created, and may run again */
    public array $after = [];

    private function __construct(public readonly string $name) {}

    public static function named(string $name): self
    {
        return new self($name);
    }

    public function column(string $name, Type $type, bool $nullable = false, string $suffix = ''): self
    {
        $copy = clone $this;
        $copy->columns[] = new Column($name, $type, $nullable, $suffix);

        return $copy;
    }

    /** A number that the database gives each new row; the primary key. */
    public function serial(Driver $driver, string $name, bool $always): self
    {
        return $this->column($name, Type::serial($always), suffix: $driver === Driver::Sqlite ? 'PRIMARY KEY AUTOINCREMENT' : 'PRIMARY KEY');
    }

    public function primaryKey(string ...$columns): self
    {
        $copy = clone $this;
        $copy->primaryKey = \array_values($columns);

        return $copy;
    }

    /** @param non-empty-list<string> $columns */
    public function unique(array $columns): self
    {
        return $this->with(new Index("{$this->name}_{$columns[0]}", $columns, unique: true));
    }

    /**
     * Named after the table and `$as`, by default the first column.
     *
     * @param non-empty-list<string> $columns
     */
    public function index(array $columns, string $method = '', ?string $as = null, string $where = ''): self
    {
        return $this->with(new Index("{$this->name}_" . ($as ?? $columns[0]), $columns, method: $method, where: $where));
    }

    public function suffix(string $suffix): self
    {
        $copy = clone $this;
        $copy->suffix = $suffix;

        return $copy;
    }

    public function after(string $statement): self
    {
        $copy = clone $this;
        $copy->after[] = $statement;

        return $copy;
    }

    /** @return non-empty-list<string> the statements that create the table, its indexes and its first rows, where they are missing */
    public function create(Driver $driver): array
    {
        $parts = \array_map(static fn(Column $column): string => $column->sql($driver), $this->columns);
        if ($this->primaryKey !== []) {
            $parts[] = 'PRIMARY KEY (' . \implode(', ', $this->primaryKey) . ')';
        }
        $separate = [];
        foreach ($this->indexes as $index) {
            if ($index->unique) {
                $parts[] = "UNIQUE ({$index->on()})";
            } elseif ($driver === Driver::Mysql) {
                $parts[] = "INDEX {$index->name} ({$index->on()})";
            } else {
                $separate[] = $index->create($this->name, $driver);
            }
        }
        $suffix = $this->suffix === '' ? '' : " {$this->suffix}";

        return ["CREATE TABLE IF NOT EXISTS {$this->name} (\n    " . \implode(",\n    ", $parts) . "\n){$suffix}", ...$separate, ...$this->after];
    }

    private function with(Index $index): self
    {
        $copy = clone $this;
        $copy->indexes[] = $index;

        return $copy;
    }
}
