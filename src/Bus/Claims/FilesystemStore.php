<?php

declare(strict_types=1);

namespace Weft\Bus\Claims;

use Weft\Bus\ClaimStore;
use Weft\Bus\ClaimUnavailableException;
use Weft\Bus\Internal\Clock;
use Weft\Bus\PublishException;

/**
 * Stores each body in a file of a directory that all processes can reach. Only the account can read the files (mode 0600). Reading and
 * writing blocks the process.
 */
final class FilesystemStore implements ClaimStore
{
    /** Device and inode of the directory: an empty mount point is not the store. */
    private readonly string $identity;

    /** @throws \ValueError when the directory does not exist or is not writable */
    public function __construct(private readonly string $directory)
    {
        if (!\is_dir($directory) || !\is_writable($directory)) {
            throw new \ValueError("\"{$directory}\" is not a writable directory");
        }
        $this->identity = $this->identity();
    }

    public function put(string $id, string $body): void
    {
        $path = $this->path($id);
        $temporary = "{$path}." . \bin2hex(\random_bytes(6));
        $umask = \umask(0o177);
        $file = @\fopen($temporary, 'xb');
        \umask($umask);
        $isSafe = $file !== false && \fwrite($file, $body) === \strlen($body) && \fsync($file);
        $file === false || \fclose($file);
        if (!$isSafe || !\rename($temporary, $path)) {
            @\unlink($temporary);
            throw new PublishException("The body {$id} of " . \strlen($body) . " bytes cannot be stored in {$this->directory}: " . (\error_get_last()['message'] ?? 'no reason given'));
        }
        $this->syncDirectory();
    }

    /** @throws ClaimUnavailableException when it is not known whether there is such a body */
    public function get(string $id): ?string
    {
        $path = $this->path($id);
        $body = null;
        $file = @\fopen($path, 'rb');
        if ($file !== false) {
            // After a read error it is only what was read before.
            $read = (string) @\stream_get_contents($file);
            $body = \strlen($read) === (\fstat($file)['size'] ?? null) ? $read : null;
            \fclose($file);
        } elseif ($this->identity() !== $this->identity) {
            throw new ClaimUnavailableException("The body {$id} cannot be read, because {$this->directory} is not the directory of the store at present: it was moved, or its file system is not mounted");
        } elseif (!\file_exists($path) && \is_executable($this->directory)) {
            return null;
        }

        return $body ?? throw new ClaimUnavailableException("The body {$id} in {$this->directory} cannot be read: " . (\error_get_last()['message'] ?? 'no reason given'));
    }

    public function prune(float $seconds): int
    {
        $before = Clock::unixTimeBefore($seconds);
        $deleted = 0;
        /** @var \SplFileInfo $file */
        foreach (new \FilesystemIterator($this->directory) as $file) {
            // Another process may delete the same files.
            $kept = \str_starts_with($file->getFilename(), 'claim-') ? @\filemtime($file->getPathname()) : false;
            if ($kept !== false && $kept < $before) {
                $deleted += (int) @\unlink($file->getPathname());
            }
        }

        return $deleted;
    }

    /** The name of a file is as durable as its contents after this. Not every file system and platform can do it, and those that cannot say so. */
    private function syncDirectory(): void
    {
        $directory = @\fopen($this->directory, 'r');
        if ($directory !== false) {
            @\fsync($directory);
            \fclose($directory);
        }
    }

    private function identity(): string
    {
        \clearstatcache();
        $status = @\stat($this->directory);

        return $status === false ? 'none' : "{$status['dev']} {$status['ino']}";
    }

    /** A hash, because ids come from messages and must not name other files. */
    private function path(string $id): string
    {
        return "{$this->directory}/claim-" . \hash('sha256', $id);
    }
}
