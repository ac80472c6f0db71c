<?php

declare(strict_types=1);

namespace Weft\Http\Sessions;

use Weft\Http\SessionStore;

/**
 * Sessions in files of a directory, which only this user may read: for the processes of one machine.
 */
final class FileStore implements SessionStore
{
    /** @throws \ValueError the directory cannot be made or written */
    public function __construct(private readonly string $directory)
    {
        if (!\is_dir($directory) && !@\mkdir($directory, 0o700, true) && !\is_dir($directory) || !\is_writable($directory)) {
            throw new \ValueError("The directory for sessions \"$directory\" cannot be written");
        }
    }

    public function read(string $id): ?StoredSession
    {
        $contents = @\file_get_contents($this->file($id));
        $parts = $contents === false ? [] : \explode("\n", $contents, 3);

        return isset($parts[2]) && (float) $parts[0] > \microtime(true) ? new StoredSession($parts[2], (int) $parts[1]) : null;
    }

    public function write(string $id, string $data, int $version, float $seconds): bool
    {
        $lock = $this->lock();
        try {
            if (($this->read($id)->version ?? 0) !== $version) {
                return false;
            }
            $temporary = "{$this->directory}/." . \bin2hex(\random_bytes(8));
            $contents = \sprintf("%.6F\n%d\n%s", \microtime(true) + $seconds, $version + 1, $data);
            if (@\file_put_contents($temporary, $contents) !== \strlen($contents) || !\chmod($temporary, 0o600) || !\rename($temporary, $this->file($id))) {
                @\unlink($temporary);
                throw new \RuntimeException("A session cannot be written to \"{$this->directory}\"");
            }

            return true;
        } finally {
            \fclose($lock);
        }
    }

    public function delete(string $id): void
    {
        $lock = $this->lock();
        @\unlink($this->file($id));
        \fclose($lock);
    }

    public function prune(): void
    {
        foreach (\glob("{$this->directory}/*") ?: [] as $file) {
            if (self::isExpired($file)) {
                $lock = $this->lock();
                // It may have been written since.
                self::isExpired($file) && @\unlink($file);
                \fclose($lock);
            }
        }
    }

    /**
     * Without suspending the task while it is held, it waits only for other processes.
     *
     * @return resource closing it unlocks
     */
    private function lock(): mixed
    {
        $lock = \fopen("{$this->directory}/.lock", 'c');
        if ($lock === false || !\flock($lock, \LOCK_EX)) {
            throw new \RuntimeException("The sessions in \"{$this->directory}\" cannot be locked");
        }

        return $lock;
    }

    private static function isExpired(string $file): bool
    {
        return (float) @\file_get_contents($file, length: 20) < \microtime(true);
    }

    private function file(string $id): string
    {
        return "{$this->directory}/$id";
    }
}
