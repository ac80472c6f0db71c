<?php

declare(strict_types=1);

namespace Weft\Workers\Internal;

use Weft\Workers\SupervisorException;

/**
 * A file with the pid of the supervisor. A lock on the file, not the number in it, tells whether a supervisor runs: the file of a
 * killed supervisor is taken over, even if another process has its pid by now.
 *
 * Weft does not write to a file that someone else could have placed there: a symbolic link, a hard link, a file of another user.
 * While the lock is held, the path leads to the locked file, so that only one supervisor runs.
 *
 * @internal
 */
final class PidFile
{
    /** The file may be removed or replaced while it is opened. */
    private const MAX_ATTEMPTS = 10;

    /** @param resource $file */
    private function __construct(private readonly string $path, private readonly mixed $file)
    {
    }

    /** @throws SupervisorException another supervisor holds the file, it is not a plain file of this user, or it cannot be written */
    public static function take(string $path): self
    {
        for ($attempt = 0; $attempt < self::MAX_ATTEMPTS; $attempt++) {
            $file = self::open($path);
            if ($file === null) {
                continue;
            }
            if (!\flock($file, \LOCK_EX | \LOCK_NB)) {
                $pid = \trim((string) \stream_get_contents($file)) ?: '(none written)';
                throw new SupervisorException("PID file $path is in use by a running supervisor with pid $pid");
            }
            if (self::isAt($path, $file)) {
                \ftruncate($file, 0);
                \fwrite($file, (string) \getmypid() . "\n");
                \fflush($file);

                return new self($path, $file);
            }
        }
        throw new SupervisorException("PID file $path: another process keeps replacing it");
    }

    /**
     * The pid of the supervisor that has taken the file, for signals to it; null if there is none. The process with the pid in the file is the
     * supervisor if it has the file open: after a supervisor was killed another process may have its pid, and the pid may be one of another
     * container that shares the directory. The lock would not tell, and testing it could make a supervisor that starts fail.
     */
    public static function holder(string $path): ?int
    {
        $pid = (int) @\file_get_contents($path);
        $file = self::found($path);
        if ($pid <= 0 || $file === false) {
            return null;
        }
        foreach (@\scandir("/proc/$pid/fd") ?: [] as $name) {
            $opened = @\stat("/proc/$pid/fd/$name");
            if ($opened !== false && [$opened['dev'], $opened['ino']] === [$file['dev'], $file['ino']]) {
                return $pid;
            }
        }

        return null;
    }

    /** Removes the file. The lock is held, so no other supervisor can own the path. */
    public function remove(): void
    {
        @\unlink($this->path);
        \fclose($this->file);
    }

    /** @return resource|null null if another process has just created or removed the file */
    private static function open(string $path)
    {
        $found = self::found($path);
        $found === false || self::check($path, $found);
        // r+ neither creates nor truncates, should the path be a link by now; x+ (O_EXCL) follows no link. e (O_CLOEXEC): a process that this
        // one starts, and that outlives it, must not have the lock.
        $file = @\fopen($path, $found === false ? 'x+e' : 'r+e');
        if ($file !== false) {
            return $file;
        }
        $reason = \error_get_last()['message'] ?? 'unknown reason';

        return ($found === false) === (self::found($path) === false)
            ? throw new SupervisorException("cannot write PID file $path: $reason")
            : null;
    }

    /** @param array<int|string, int> $found */
    private static function check(string $path, array $found): void
    {
        $wrong = match (true) {
            ($found['mode'] & 0o170000) === 0o120000 => 'a symbolic link',
            ($found['mode'] & 0o170000) !== 0o100000 => 'not a regular file',
            $found['nlink'] > 1 => 'a hard link',
            $found['uid'] !== self::user() => "owned by user {$found['uid']}",
            default => null,
        };
        if ($wrong !== null) {
            throw new SupervisorException("PID file $path is $wrong; remove it or choose another path");
        }
    }

    /**
     * Whether the path still leads to the file.
     *
     * @param resource $file
     */
    private static function isAt(string $path, $file): bool
    {
        $found = self::found($path);
        $opened = \fstat($file);
        if ($found === false || $opened === false || [$found['dev'], $found['ino']] !== [$opened['dev'], $opened['ino']]) {
            return false;
        }
        self::check($path, $found);

        return true;
    }

    /** @return array<int|string, int>|false the file at the path; links are not followed */
    private static function found(string $path): array|false
    {
        \clearstatcache(true, $path);

        return @\lstat($path);
    }

    /** The user this process runs as; the extension posix is optional. */
    private static function user(): int
    {
        $self = @\stat('/proc/self');
        $user = $self === false ? \getmyuid() : $self['uid'];

        return $user === false ? throw new SupervisorException('cannot write a PID file: /proc does not tell which user this process runs as') : $user;
    }
}
