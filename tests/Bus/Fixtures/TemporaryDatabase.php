<?php

declare(strict_types=1);

namespace Weft\Tests\Bus\Fixtures;

use PHPUnit\Framework\Attributes\After;
use PHPUnit\Framework\Attributes\Before;

/** A folder for the SQLite files of one test. */
trait TemporaryDatabase
{
    private string $folder;

    /** @before */
    #[Before]
    protected function makeFolder(): void
    {
        $this->folder = \sys_get_temp_dir() . '/weft-bus-' . \bin2hex(\random_bytes(6));
        \mkdir($this->folder);
    }

    /** @after */
    #[After]
    protected function removeFolder(): void
    {
        $files = new \RecursiveIteratorIterator(
            new \RecursiveDirectoryIterator($this->folder, \FilesystemIterator::SKIP_DOTS),
            \RecursiveIteratorIterator::CHILD_FIRST,
        );
        foreach ($files as $file) {
            $file->isDir() ? \rmdir($file->getPathname()) : \unlink($file->getPathname());
        }
        \rmdir($this->folder);
    }

    private function dsn(string $name = 'customers'): string
    {
        return "sqlite://{$this->folder}/{$name}.db";
    }
}
