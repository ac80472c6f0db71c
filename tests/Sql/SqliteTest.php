<?php

declare(strict_types=1);

namespace Weft\Tests\Sql;

final class SqliteTest extends SqlConformance
{
    private string $file;

    protected function setUp(): void
    {
        $this->file = \sys_get_temp_dir() . '/weft-sql-' . \bin2hex(\random_bytes(6)) . '.db';
        parent::setUp();
    }

    protected function tearDown(): void
    {
        parent::tearDown();
        foreach (['', '-wal', '-shm'] as $suffix) {
            @\unlink($this->file . $suffix);
        }
    }

    protected function dsn(): string
    {
        return "sqlite://{$this->file}";
    }

    protected function type(string $type): string
    {
        return ['bytes' => 'BLOB', 'float' => 'REAL'][$type] ?? $type;
    }

    protected function endless(): string
    {
        return 'WITH RECURSIVE forever (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM forever) SELECT max(n) FROM forever';
    }

    protected function series(int $rows): string
    {
        return "WITH RECURSIVE series (n) AS (SELECT 1 WHERE $rows > 0 UNION ALL SELECT n + 1 FROM series WHERE n < $rows)"
            . " SELECT n, printf('%.*c', 200, 'x') AS pad FROM series";
    }
}
