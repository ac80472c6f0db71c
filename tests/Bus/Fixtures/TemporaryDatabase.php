<?php

declare(strict_types=1);

namespace Weft\Tests\Bus\Fixtures;

use PHPUnit\Framework\Attributes\After;
use PHPUnit\Framework\Attributes\Before;

/** A directory for the SQLite files of one test. */
trait TemporaryDatabase
{
    private string $directory;

    /** @before */
    #[Before]
    protected function makeDirectory(): void
    {
        $this->directory = \sys_get_temp_dir() . '/weft-bus-' . \bin2hex(\random_bytes(6));
        \mkdir($this->directory);
    }

    /** @after */
    #[After]
    protected function removeDirectory(): void
    {
        $files = new \RecursiveIteratorIterator(
            new \RecursiveDirectoryIterator($this->directory, \FilesystemIterator::SKIP_DOTS),
            \RecursiveIteratorIterator::CHILD_FIRST,
        );
        foreach ($files as $file) {
            $file->isDir() ? \rmdir($file->getPathname()) : \unlink($file->getPathname());
        }
        \rmdir($this->directory);
    }

    private function dsn(string $name = 'customers'): string
    {
        return "sqlite://{$this->directory}/{$name}.db";
    }
}
