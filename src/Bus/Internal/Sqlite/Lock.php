<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Sqlite;

/**
 * A file that is locked while its process lives: the kernel releases the lock when the process ends in any way.
 *
 * @internal
 */
final class Lock
{
    /** @param resource $handle */
    private function __construct(
        public readonly string $path,
        private $handle,
    ) {}

    /** Creates a lock file beside the database. */
    public static function create(string $database): self
    {
        $directory = "{$database}-weft";
        if (!@\mkdir($directory) && !\is_dir($directory)) {
            throw new \RuntimeException("Cannot create the directory {$directory} for the lock files of consumers: " . (\error_get_last()['message'] ?? ''));
        }

        return self::tryOpen("{$directory}/consumer-" . \bin2hex(\random_bytes(8)), 'xe')
            ?? throw new \RuntimeException("Cannot create a lock file in {$directory}: " . (\error_get_last()['message'] ?? ''));
    }

    /** Whether the process that created the lock has ended. */
    public static function isAbandoned(string $path): bool
    {
        $lock = \is_file($path) ? self::tryOpen($path, 're') : null;
        $lock?->release();

        return $lock !== null || !\is_file($path);
    }

    public function release(): void
    {
        @\unlink($this->path);
        \fclose($this->handle);
    }

    private static function tryOpen(string $path, string $mode): ?self
    {
        $handle = @\fopen($path, $mode);

        return $handle !== false && \flock($handle, \LOCK_EX | \LOCK_NB) ? new self($path, $handle) : null;
    }
}
