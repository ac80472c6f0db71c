<?php

declare(strict_types=1);

namespace Weft\Sql\Internal\Schema;

use Weft\Sql\Connection;
use Weft\Sql\Driver;

/**
 * The tables and views of a database whose names begin with `weft`, their columns and indexes.
 *
 * @internal
 */
final class Catalog
{
    private const RELATIONS = [
        'postgres' => "SELECT c.relname AS name, CASE c.relkind WHEN 'v' THEN 1 ELSE 0 END AS is_view FROM pg_class c
            WHERE c.relname LIKE 'weft%' AND c.relkind IN ('r', 'p', 'v') AND pg_table_is_visible(c.oid)",
        'mysql' => "SELECT table_name AS name, CASE table_type WHEN 'VIEW' THEN 1 ELSE 0 END AS is_view FROM information_schema.tables
            WHERE table_schema = database() AND table_name LIKE 'weft%'",
        'sqlite' => "SELECT name, type = 'view' AS is_view FROM sqlite_master WHERE type IN ('table', 'view') AND name LIKE 'weft%'",
    ];

    private const COLUMNS = [
        'postgres' => "SELECT c.relname AS relation, a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type,
                CASE WHEN a.attnotnull THEN 0 ELSE 1 END AS nullable
            FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
            WHERE c.relname LIKE 'weft%' AND c.relkind IN ('r', 'p', 'v') AND pg_table_is_visible(c.oid) AND a.attnum > 0 AND NOT a.attisdropped",
        'mysql' => "SELECT table_name AS relation, column_name AS name, column_type AS type, CASE is_nullable WHEN 'YES' THEN 1 ELSE 0 END AS nullable
            FROM information_schema.columns WHERE table_schema = database() AND table_name LIKE 'weft%'",
        'sqlite' => "SELECT m.name AS relation, c.name, c.type, 1 - c.\"notnull\" AS nullable FROM sqlite_master m JOIN pragma_table_info(m.name) c
            WHERE m.type IN ('table', 'view') AND m.name LIKE 'weft%'",
    ];

    /** Primary keys too, except those that SQLite keeps in the table itself. */
    private const INDEXES = [
        'postgres' => "SELECT c.relname AS relation, i.indexrelid::text AS name, CASE WHEN i.indisunique THEN 1 ELSE 0 END AS is_unique, a.attname AS column_name
            FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid CROSS JOIN unnest(i.indkey::int[]) WITH ORDINALITY AS k(number, place)
                JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.number
            WHERE c.relname LIKE 'weft%' AND pg_table_is_visible(c.oid) AND i.indisvalid ORDER BY c.relname, i.indexrelid, k.place",
        'mysql' => "SELECT table_name AS relation, index_name AS name, 1 - non_unique AS is_unique, column_name AS column_name
            FROM information_schema.statistics WHERE table_schema = database() AND table_name LIKE 'weft%' ORDER BY table_name, index_name, seq_in_index",
        'sqlite' => "SELECT m.name AS relation, l.name, l.\"unique\" AS is_unique, i.name AS column_name
            FROM sqlite_master m JOIN pragma_index_list(m.name) l JOIN pragma_index_info(l.name) i
            WHERE m.type = 'table' AND m.name LIKE 'weft%' ORDER BY m.name, l.name, i.seqno",
    ];

    /** @var array<string, bool> whether it is a view, by name */
    private readonly array $relations;

    /** @var array<string, array<string, array{type: string, nullable: bool}>>|null by relation and column */
    private ?array $columns = null;

    /** @var array<string, array<string, array{unique: bool, columns: list<string>}>>|null by relation and index */
    private ?array $indexes = null;

    /** @throws \Weft\Sql\SqlException */
    public function __construct(private readonly Connection $connection, public readonly Driver $driver)
    {
        $relations = [];
        /** @var array{name: string, is_view: int} $row */
        foreach ($connection->execute(self::RELATIONS[$driver->value])->rows() as $row) {
            $relations[$row['name']] = (bool) $row['is_view'];
        }
        $this->relations = $relations;
    }

    /** @return list<string> names of tables and views */
    public function names(): array
    {
        return \array_keys($this->relations);
    }

    /** Whether there is a table or a view of this name. */
    public function has(string $name): bool
    {
        return isset($this->relations[$name]);
    }

    public function isTable(string $name): bool
    {
        return ($this->relations[$name] ?? true) === false;
    }

    public function isView(string $name): bool
    {
        return $this->relations[$name] ?? false;
    }

    public function hasColumn(string $relation, string $column): bool
    {
        return isset($this->columns($relation)[$column]);
    }

    /** @param string $marker a table, or `table.column` */
    public function holds(string $marker): bool
    {
        [$table, $column] = \explode('.', "{$marker}.");

        return $this->isTable($table) && ($column === '' || $this->hasColumn($table, $column));
    }

    /** @return array<string, array{type: string, nullable: bool}> by name */
    public function columns(string $relation): array
    {
        if ($this->columns === null) {
            $this->columns = [];
            /** @var array{relation: string, name: string, type: string, nullable: int} $row */
            foreach ($this->connection->execute(self::COLUMNS[$this->driver->value])->rows() as $row) {
                $this->columns[$row['relation']][$row['name']] = ['type' => $this->plain($row['type']), 'nullable' => (bool) $row['nullable']];
            }
        }

        return $this->columns[$relation] ?? [];
    }

    /** @param list<string> $columns in the order of the index */
    public function hasIndex(string $table, array $columns, bool $unique): bool
    {
        $this->indexes ??= $this->indexes();
        foreach ($this->indexes[$table] ?? [] as $index) {
            if ($index['columns'] === $columns && $index['unique'] === $unique) {
                return true;
            }
        }

        return false;
    }

    /** @return array<string, array<string, array{unique: bool, columns: list<string>}>> by relation and index */
    private function indexes(): array
    {
        $columns = $unique = [];
        /** @var array{relation: string, name: string, is_unique: int, column_name: string} $row */
        foreach ($this->connection->execute(self::INDEXES[$this->driver->value])->rows() as $row) {
            $columns[$row['relation']][$row['name']][] = $row['column_name'];
            $unique[$row['relation']][$row['name']] = (bool) $row['is_unique'];
        }
        $indexes = [];
        foreach ($columns as $relation => $named) {
            foreach ($named as $name => $list) {
                $indexes[$relation][$name] = ['unique' => $unique[$relation][$name], 'columns' => $list];
            }
        }

        return $indexes;
    }

    /** MariaDB gives integers a display width, MySQL 8 does not. */
    private function plain(string $type): string
    {
        return $this->driver === Driver::Mysql ? (string) \preg_replace('/^((?:tiny|small|big)?int)\(\d+\)/', '$1', $type) : \strtolower($type);
    }
}
