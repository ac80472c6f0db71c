<?php

declare(strict_types=1);

namespace Weft\Sql\Internal\Schema;

/**
 * Compares the tables of a database with those that a component declares.
 *
 * @internal
 */
final class Comparison
{
    /**
     * More columns and indexes than declared are no difference.
     *
     * @param bool $strict whether NOT NULL matters; while columns of the version before are filled in too, some allow NULL
     * @return list<string> one line for each difference
     */
    public static function of(Component $component, Catalog $catalog, bool $strict): array
    {
        $differences = [];
        foreach ($component->tables($catalog->driver) as $table) {
            $differences = [...$differences, ...($catalog->has($table->name) ? self::table($table, $catalog, $strict) : ["table {$table->name} is missing"])];
        }

        return $differences;
    }

    /** @return list<string> */
    private static function table(Table $table, Catalog $catalog, bool $strict): array
    {
        $differences = [];
        $found = $catalog->columns($table->name);
        foreach ($table->columns as $column) {
            $wanted = $column->type->catalogued($catalog->driver);
            $actual = $found[$column->name] ?? null;
            if ($actual === null) {
                $differences[] = "column {$table->name}.{$column->name} is missing, {$wanted} is expected";
            } elseif ($actual['type'] !== $wanted) {
                $differences[] = "column {$table->name}.{$column->name} has the type {$actual['type']}, {$wanted} is expected";
            } elseif ($strict && $actual['nullable'] !== $column->nullable && !self::isInKey($table, $column) && !$catalog->isView($table->name)) {
                $differences[] = "column {$table->name}.{$column->name} " . ($column->nullable ? 'is NOT NULL, NULL is expected' : 'allows NULL, NOT NULL is expected');
            }
        }

        return $catalog->isView($table->name) ? $differences : [...$differences, ...self::indexes($table, $catalog)];
    }

    /** @return list<string> */
    private static function indexes(Table $table, Catalog $catalog): array
    {
        $differences = [];
        if ($table->primaryKey !== [] && !$catalog->hasIndex($table->name, $table->primaryKey, true)) {
            $differences[] = "primary key ({$table->name}: " . \implode(', ', $table->primaryKey) . ') is missing';
        }
        foreach ($table->indexes as $index) {
            if (!$catalog->hasIndex($table->name, $index->columns, $index->unique)) {
                $differences[] = ($index->unique ? 'unique ' : '') . "index of {$table->name} ({$index->on()}) is missing";
            }
        }

        return $differences;
    }

    /** SQLite lists the columns of a primary key as nullable in some tables. */
    private static function isInKey(Table $table, Column $column): bool
    {
        return $column->isPrimaryKey() || \in_array($column->name, $table->primaryKey, true);
    }
}
