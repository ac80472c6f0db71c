<?php

declare(strict_types=1);

namespace Weft\Sql\Internal\Schema;

use Weft\Sql\Driver;

/**
 * Gives a table, and columns of it, another name while workers use both names.
 *
 * - PostgreSQL renames in one transaction and leaves a view under the old name, through which workers of the version before read and write.
 * - MySQL cannot rename a column and create a view in one step. Without other column names it swaps table and view by one RENAME TABLE.
 *   With them, triggers and a copy fill the new table before that.
 * - SQLite cannot count what is written through a view, so it keeps both tables, which triggers hold equal.
 *
 * @internal
 */
final class Rename
{
    /**
     * @param string                $from    the table of the version before
     * @param Table                 $to      the table of this version
     * @param array<string, string> $columns new names by old name; the others keep theirs
     */
    public function __construct(
        private readonly string $from,
        private readonly Table $to,
        private readonly array $columns = [],
    ) {}

    /** @return list<Step> */
    public function expand(Driver $driver): array
    {
        $needed = fn(Catalog $catalog): bool => $catalog->isTable($this->from);
        $summary = "rename table {$this->from} to {$this->to->name}";

        return match ($driver) {
            Driver::Postgres => [new Step($summary, $this->renameBehindView(), $needed)],
            Driver::Sqlite => [new Step($summary, $this->keepBoth(), fn(Catalog $catalog): bool => $needed($catalog) && !$catalog->has($this->to->name))],
            Driver::Mysql => $this->columns === [] ? $this->swap($summary, $needed) : $this->copyAndSwap($summary, $needed),
        };
    }

    /** @return list<Step> */
    public function contract(Driver $driver): array
    {
        $summary = "drop {$this->from}, the old name of {$this->to->name}";
        if ($driver !== Driver::Sqlite) {
            return [new Step($summary, ["DROP VIEW IF EXISTS {$this->from}"], fn(Catalog $catalog): bool => $catalog->isView($this->from))];
        }
        $statements = ["DROP TABLE IF EXISTS {$this->from}"];
        foreach (['insert', 'update', 'delete'] as $event) {
            \array_unshift($statements, "DROP TRIGGER IF EXISTS {$this->to->name}_{$event}");
        }

        return [new Step($summary, $statements, fn(Catalog $catalog): bool => $catalog->isTable($this->from))];
    }

    /** @return non-empty-list<string> */
    private function renameBehindView(): array
    {
        $to = $this->to->name;
        $statements = ["ALTER TABLE {$this->from} RENAME TO {$to}"];
        foreach ($this->columns as $old => $new) {
            $statements[] = "ALTER TABLE {$to} RENAME COLUMN {$old} TO {$new}";
        }
        $statements[] = "ALTER INDEX IF EXISTS {$this->from}_pkey RENAME TO {$to}_pkey";
        foreach ($this->to->indexes as $index) {
            $suffix = \substr($index->name, \strlen($to) + 1);
            $old = \array_search($suffix, $this->columns, true) ?: $suffix;
            $statements[] = "ALTER INDEX IF EXISTS {$this->from}_{$old} RENAME TO {$index->name}";
        }

        return [...$statements, ...self::view($this->from, $to, $this->selected())];
    }

    /**
     * A view through which everything can be written, with the privileges of its table.
     *
     * @param string $columns with their names in the view
     * @return non-empty-list<string>
     */
    public static function view(string $view, string $table, string $columns): array
    {
        return [
            // Workers of version 1 delete old rows by their ctid.
            "CREATE VIEW {$view} AS SELECT {$columns}, ctid FROM {$table}",
            // On one line, as all statements with semicolons in them, so that tools find the ends of statements.
            'DO $$ DECLARE given record; BEGIN FOR given IN SELECT a.grantee, a.privilege_type FROM pg_class c, aclexplode(c.relacl) a'
                . " WHERE c.oid = '{$table}'::regclass AND a.grantee <> c.relowner AND a.privilege_type IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE') LOOP"
                . " EXECUTE format('GRANT %s ON {$view} TO %s', given.privilege_type,"
                . " CASE given.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(given.grantee)) END); END LOOP; END $$",
        ];
    }

    /** @return non-empty-list<string> */
    private function keepBoth(): array
    {
        $to = $this->to->name;
        $new = \implode(', ', $this->names());
        $old = \implode(', ', $this->oldNames());

        return [
            ...$this->to->create(Driver::Sqlite),
            "INSERT INTO {$to} ({$new}) SELECT {$old} FROM {$this->from}",
            ...$this->mirror($this->from, $this->oldNames(), $to, $this->names()),
            ...$this->mirror($to, $this->names(), $this->from, $this->oldNames()),
        ];
    }

    /**
     * Triggers mirror each table into the other. A trigger skips rows that the opposite trigger has written.
     *
     * @param list<string> $columns
     * @param list<string> $theirs the same columns in the other table
     * @return list<string>
     */
    private function mirror(string $table, array $columns, string $other, array $theirs): array
    {
        $same = \implode(' AND ', \array_map(static fn(int $place): string => "{$theirs[$place]} = OLD.{$columns[$place]}", $this->keyPlaces()));
        $equal = \implode(' AND ', \array_map(static fn(string $column, string $their): string => "{$their} IS NEW.{$column}", $columns, $theirs));
        $values = \implode(', ', \array_map(static fn(string $column): string => "NEW.{$column}", $columns));
        $sets = \implode(', ', \array_map(static fn(string $column, string $their): string => "{$their} = NEW.{$column}", $columns, $theirs));

        return [
            // Not a DELETE before the INSERT: that would fire the other table's trigger.
            "CREATE TRIGGER {$table}_insert AFTER INSERT ON {$table} WHEN NOT EXISTS (SELECT 1 FROM {$other} WHERE {$equal}) BEGIN "
                . "INSERT OR REPLACE INTO {$other} (" . \implode(', ', $theirs) . ") VALUES ({$values}); END",
            "CREATE TRIGGER {$table}_update AFTER UPDATE ON {$table} BEGIN UPDATE {$other} SET {$sets} WHERE {$same}; END",
            "CREATE TRIGGER {$table}_delete AFTER DELETE ON {$table} BEGIN DELETE FROM {$other} WHERE {$same}; END",
        ];
    }

    /**
     * @param \Closure(Catalog): bool $needed
     * @return list<Step>
     */
    private function swap(string $summary, \Closure $needed): array
    {
        $to = $this->to->name;

        return [
            // A view needs a table under that name when it is created.
            new Step($summary, [
                "CREATE TABLE IF NOT EXISTS {$to} LIKE {$this->from}",
                "CREATE OR REPLACE VIEW {$this->from}_view AS SELECT {$this->selected()} FROM {$to}",
                "RENAME TABLE {$to} TO {$to}_empty, {$this->from} TO {$to}, {$this->from}_view TO {$this->from}",
            ], $needed),
            new Step("drop {$to}_empty", ["DROP TABLE IF EXISTS {$to}_empty"], static fn(Catalog $catalog): bool => $catalog->isTable("{$to}_empty")),
        ];
    }

    /**
     * @param \Closure(Catalog): bool $needed
     * @return list<Step>
     */
    private function copyAndSwap(string $summary, \Closure $needed): array
    {
        $to = $this->to->name;
        $names = \implode(', ', $this->names());
        $values = \implode(', ', \array_map(static fn(string $column): string => "NEW.{$column}", $this->oldNames()));
        $same = \implode(' AND ', \array_map(fn(int $place): string => "{$this->names()[$place]} = OLD.{$this->oldNames()[$place]}", $this->keyPlaces()));

        return [
            new Step("create table {$to}", $this->to->create(Driver::Mysql), $needed),
            new Step("copy changes of {$this->from} to {$to} by triggers", [
                "DROP TRIGGER IF EXISTS {$this->from}_insert",
                "DROP TRIGGER IF EXISTS {$this->from}_update",
                "DROP TRIGGER IF EXISTS {$this->from}_delete",
                // An interrupted attempt may have left rows that have changed since.
                "DELETE FROM {$to}",
                "CREATE TRIGGER {$this->from}_delete AFTER DELETE ON {$this->from} FOR EACH ROW DELETE FROM {$to} WHERE {$same}",
                "CREATE TRIGGER {$this->from}_update AFTER UPDATE ON {$this->from} FOR EACH ROW REPLACE INTO {$to} ({$names}) VALUES ({$values})",
                "CREATE TRIGGER {$this->from}_insert AFTER INSERT ON {$this->from} FOR EACH ROW REPLACE INTO {$to} ({$names}) VALUES ({$values})",
            ], $needed),
            new Step("copy {$this->from} to {$to}", [
                "INSERT IGNORE INTO {$to} ({$names}) SELECT " . \implode(', ', $this->oldNames()) . " FROM {$this->from} LOCK IN SHARE MODE",
            ], $needed, data: true),
            new Step($summary, [
                "CREATE OR REPLACE VIEW {$this->from}_view AS SELECT {$this->selected()} FROM {$to}",
                "RENAME TABLE {$this->from} TO {$this->from}_copied, {$this->from}_view TO {$this->from}",
            ], $needed),
            new Step("drop {$this->from}_copied", ["DROP TABLE IF EXISTS {$this->from}_copied"], fn(Catalog $catalog): bool => $catalog->isTable("{$this->from}_copied")),
        ];
    }

    /** @return list<string> */
    private function names(): array
    {
        return \array_map(static fn(Column $column): string => $column->name, $this->to->columns);
    }

    /** @return list<string> in the order of {@see names()} */
    private function oldNames(): array
    {
        $old = \array_flip($this->columns);

        return \array_map(static fn(string $name): string => $old[$name] ?? $name, $this->names());
    }

    /** The columns under their old names. */
    private function selected(): string
    {
        return \implode(', ', \array_map(
            static fn(string $name, string $old): string => $name === $old ? $name : "{$name} AS {$old}",
            $this->names(),
            $this->oldNames(),
        ));
    }

    /** @return list<int> places of the primary key's columns among all */
    private function keyPlaces(): array
    {
        $places = [];
        foreach ($this->to->columns as $place => $column) {
            if ($column->isPrimaryKey() || \in_array($column->name, $this->to->primaryKey, true)) {
                $places[] = $place;
            }
        }

        return $places;
    }
}
