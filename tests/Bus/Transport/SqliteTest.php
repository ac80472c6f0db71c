<?php

declare(strict_types=1);

namespace Weft\Tests\Bus\Transport;

use Weft\Bus\Transport;
use Weft\Bus\Transport\Sqlite;

final class SqliteTest extends TransportConformance
{
    private string $file;

    protected function setUp(): void
    {
        parent::setUp();
        $this->file = \sys_get_temp_dir() . '/weft-bus-' . \bin2hex(\random_bytes(6)) . '.db';
    }

    protected function tearDown(): void
    {
        foreach ([...\glob("{$this->file}-weft/*") ?: [], $this->file, "{$this->file}-wal", "{$this->file}-shm"] as $file) {
            @\unlink($file);
        }
        @\rmdir("{$this->file}-weft");
    }

    protected function connect(): Transport
    {
        return Sqlite::connect("sqlite:{$this->file}");
    }
}
