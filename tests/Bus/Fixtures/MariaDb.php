<?php

declare(strict_types=1);

namespace Weft\Tests\Bus\Fixtures;

use PHPUnit\Framework\Attributes\After;
use Weft\Sql\Database;
use Weft\Tests\Sql\Support\EmptyDatabase;

/** A database of MariaDB for one test, made when it is asked for. */
trait MariaDb
{
    private ?EmptyDatabase $mariaDb = null;

    /** @after */
    #[After]
    protected function dropMariaDb(): void
    {
        $this->mariaDb?->drop();
        $this->mariaDb = null;
    }

    private function mariaDb(): Database
    {
        $database = Database::connect($this->mariaDbDsn());
        $database->execute('CREATE TABLE IF NOT EXISTS effects (id VARCHAR(64), listener VARCHAR(64))');

        return $database;
    }

    private function mariaDbDsn(): string
    {
        $this->mariaDb ??= new EmptyDatabase('mariadb');

        return $this->mariaDb->dsn();
    }
}
