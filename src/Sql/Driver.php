<?php

declare(strict_types=1);

namespace Weft\Sql;

use Weft\UsageError;

enum Driver: string
{
    case Postgres = 'postgres';
    case Mysql = 'mysql';
    case Sqlite = 'sqlite';

    /**
     * @internal
     *
     * @throws UsageError for a database that has no channels
     */
    public function notifies(): void
    {
        if ($this !== self::Postgres) {
            throw new UsageError("{$this->value} has no LISTEN and NOTIFY, PostgreSQL has");
        }
    }
}
