<?php

declare(strict_types=1);

namespace Weft\Bridge\Laravel\Database;

use Illuminate\Database\Schema\SQLiteBuilder;

/** @internal made by {@see SQLiteConnection} */
final class SQLiteSchema extends SQLiteBuilder
{
    /** Laravel empties the file, which Weft's pool has open: that would damage it. */
    public function dropAllTables(): void
    {
        $this->dropAll('table');
    }

    public function dropAllViews(): void
    {
        $this->dropAll('view');
    }

    /** @param string|null $path null: the file of the connection */
    public function refreshDatabaseFile($path = null): void
    {
        if ($path !== null && $path !== $this->connection->getDatabaseName()) {
            \file_put_contents($path, '');

            return;
        }
        $this->dropAll('view');
        $this->dropAll('table');
    }

    private function dropAll(string $type): void
    {
        $checks = (int) ((array) $this->connection->selectOne('PRAGMA foreign_keys'))['foreign_keys'];
        $checks === 1 && $this->connection->statement('PRAGMA foreign_keys = OFF');
        try {
            // A virtual table takes its own tables with it, so it comes first.
            $sql = "SELECT name FROM sqlite_master WHERE type = ? AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY sql LIKE 'CREATE VIRTUAL%' DESC";
            foreach ($this->connection->select($sql, [$type]) as $row) {
                $this->connection->statement(\sprintf('DROP %s IF EXISTS "%s"', $type, \str_replace('"', '""', ((array) $row)['name'])));
            }
        } finally {
            $checks === 1 && $this->connection->statement('PRAGMA foreign_keys = ON');
        }
    }
}
