<?php

declare(strict_types=1);

namespace Weft\Tests\Lock;

use Weft\Lock\LockStore;
use Weft\Lock\SqlStore;
use Weft\Tests\Sql\Support\Databases;

final class PostgresStoreTest extends LockStoreConformance
{
    use Databases;

    protected function store(): LockStore
    {
        return new SqlStore($this->database('postgres'));
    }
}
