<?php

declare(strict_types=1);

namespace Weft\Bridge\Laravel\Database;

use Illuminate\Database\SQLiteConnection as Connection;
use Illuminate\Database\Schema\SQLiteBuilder;

/**
 * Laravel's connection with SQLite, whose schema builder changes files that are open only by SQL.
 *
 * @internal
 */
final class SQLiteConnection extends Connection
{
    public function getSchemaBuilder(): SQLiteBuilder
    {
        if ($this->schemaGrammar === null) {
            $this->useDefaultSchemaGrammar();
        }

        return $this->getPdo() instanceof Pdo ? new SQLiteSchema($this) : new SQLiteBuilder($this);
    }
}
