<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

/** A directory of a test's own. */
final class Directory
{
    public readonly string $path;

    public function __construct()
    {
        $this->path = sys_get_temp_dir() . '/weft-' . bin2hex(random_bytes(8));
        mkdir($this->path);
    }

    public function write(string $name, string $contents, ?int $modified = null): string
    {
        $path = "$this->path/$name";
        @mkdir(\dirname($path), 0o777, true);
        file_put_contents($path, $contents);
        if ($modified !== null) {
            touch($path, $modified);
        }

        return $path;
    }

    /** @return list<string> */
    public function names(): array
    {
        return array_values(array_diff((array) scandir($this->path), ['.', '..']));
    }

    public function remove(): void
    {
        exec('rm -rf ' . escapeshellarg($this->path));
    }
}
