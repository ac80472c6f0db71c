<?php

declare(strict_types=1);

namespace Weft\Bridge\Symfony\Session;

use function Weft\delay;

/**
 * Keeps sessions in files. A session is locked from its start until it is saved, across tasks and worker processes; a request that waits
 * for the lock blocks no other task.
 */
final class FileHandler implements \SessionHandlerInterface, \SessionIdInterface, \SessionUpdateTimestampHandlerInterface
{
    /** Seconds between two attempts to lock a session. */
    private const LOCK_RETRY_INTERVAL = 0.005;

    private static ?int $user = null;

    /** @var resource|null the locked file */
    private mixed $file = null;

    /** @param string $directory made if it is missing, readable for this user only */
    public function __construct(private readonly string $directory)
    {
    }

    public function open(string $path, string $name): bool
    {
        return \is_dir($this->directory) || @\mkdir($this->directory, 0o700, true) || \is_dir($this->directory);
    }

    public function close(): bool
    {
        if ($this->file !== null) {
            \fclose($this->file);
            $this->file = null;
        }

        return true;
    }

    public function read(string $id): string
    {
        $this->close();
        $path = $this->path($id);
        while (true) {
            $file = self::openOwn($path);
            while (!\flock($file, \LOCK_EX | \LOCK_NB)) {
                delay(self::LOCK_RETRY_INTERVAL);
            }
            \clearstatcache(true, $path);
            $found = @\lstat($path);
            if ($found !== false && $found['ino'] === (\fstat($file)['ino'] ?? null)) {
                break;
            }
            // It was deleted or replaced while this request waited for it.
            \fclose($file);
        }
        $this->file = $file;

        return (string) \stream_get_contents($file);
    }

    public function write(string $id, string $data): bool
    {
        if ($this->file === null) {
            return false;
        }
        \rewind($this->file);

        return \ftruncate($this->file, 0) && \fwrite($this->file, $data) === \strlen($data) && \fflush($this->file);
    }

    public function destroy(string $id): bool
    {
        @\unlink($this->path($id));

        return true;
    }

    public function gc(int $max_lifetime): int
    {
        $deleted = 0;
        foreach (\glob("$this->directory/session-*") ?: [] as $path) {
            if ((int) @\filemtime($path) < \time() - $max_lifetime) {
                $deleted += (int) @\unlink($path);
            }
        }

        return $deleted;
    }

    /** A new random id. PHP 8.6 warns of a handler without this method, though only its own sessions call it. */
    public function create_sid(): string // phpcs:ignore PSR1.Methods.CamelCapsMethodName
    {
        return \bin2hex(\random_bytes(20));
    }

    public function validateId(string $id): bool
    {
        return \is_file($this->path($id));
    }

    public function updateTimestamp(string $id, string $data): bool
    {
        return \touch($this->path($id));
    }

    public function __clone()
    {
        $this->file = null;
    }

    /**
     * Opens a session file, which only this user can read. As PHP does, it refuses a link and the file of another user: in a directory that
     * others may write to, they could name the file that is read or overwritten.
     *
     * @return resource
     */
    private static function openOwn(string $path)
    {
        if (\is_link($path)) {
            throw new \RuntimeException("The session file $path is a symbolic link");
        }
        $mask = \umask(0o077);
        try {
            $file = @\fopen($path, 'c+b') ?: throw new \RuntimeException("The session file $path cannot be opened");
        } finally {
            \umask($mask);
        }
        $status = (array) \fstat($file);
        if (!\in_array($status['uid'] ?? null, [0, self::user()], true)) {
            throw new \RuntimeException("The session file $path belongs to another user");
        }
        if ((($status['mode'] ?? 0) & 0o077) !== 0) {
            @\chmod($path, 0o600);
        }

        return $file;
    }

    /** The user that files of this process belong to; ext/posix need not be installed. */
    private static function user(): ?int
    {
        if (self::$user === null) {
            $file = \tmpfile();
            self::$user = $file === false ? null : (\fstat($file)['uid'] ?? null);
        }

        return self::$user;
    }

    private function path(string $id): string
    {
        if (\preg_match('/^[a-zA-Z0-9,-]+$/D', $id) !== 1) {
            throw new \ValueError('The id of a session has characters that no id has');
        }

        return "$this->directory/session-$id";
    }
}
