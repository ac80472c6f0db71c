<?php

declare(strict_types=1);

namespace Weft\Workers\Internal;

use Weft\Workers\SupervisorException;

/**
 * A file with the pid of the supervisor. A lock on it, not the number in it, says whether that one still runs: a file that
 * was left behind by a killed one is taken over, whoever has got its pid meanwhile.
 *
 * Nothing is written to a file that somebody else could have put there: a link, a second name of another file, a file of
 * another user. While the lock is held, the path leads to the locked file, so that there is one supervisor.
 *
 * @internal
 */
final class PidFile
{
    /** How often the file may vanish or change while it is opened. */
    private const ATTEMPTS = 10;

    /** @param resource $file */
    private function __construct(private readonly string $path, private readonly mixed $file)
    {
    }

    /** @throws SupervisorException it is another supervisor's, is no file of this user's alone, or cannot be written */
    public static function take(string $path): self
    {
        for ($attempt = 0; $attempt < self::ATTEMPTS; $attempt++) {
            $file = self::open($path);
            if ($file === null) {
                continue;
            }
            if (!\flock($file, \LOCK_EX | \LOCK_NB)) {
                $pid = \trim((string) \stream_get_contents($file)) ?: '(none written)';
                throw new SupervisorException("the PID file $path belongs to a supervisor that runs, with pid $pid");
            }
            if (self::isAt($path, $file)) {
                \ftruncate($file, 0);
                \fwrite($file, (string) \getmypid() . "\n");
                \fflush($file);

                return new self($path, $file);
            }
        }
        throw new SupervisorException("the PID file $path is replaced by somebody else again and again");
    }

    /** While the lock is held: nobody can have taken the path over. */
    public function remove(): void
    {
        @\unlink($this->path);
        \fclose($this->file);
    }

    /** @return resource|null null where another process was quicker to make it or to remove it */
    private static function open(string $path)
    {
        $found = self::found($path);
        $found === false || self::check($path, $found);
        // r+ makes nothing and cuts nothing off, should there be a link by now; x+ (O_EXCL) follows none.
        $file = @\fopen($path, $found === false ? 'x+' : 'r+');
        if ($file !== false) {
            return $file;
        }
        $reason = \error_get_last()['message'] ?? 'unknown reason';

        return ($found === false) === (self::found($path) === false)
            ? throw new SupervisorException("cannot write the PID file $path: $reason")
            : null;
    }

    /** @param array<int|string, int> $found */
    private static function check(string $path, array $found): void
    {
        $wrong = match (true) {
            ($found['mode'] & 0o170000) === 0o120000 => 'a symbolic link',
            ($found['mode'] & 0o170000) !== 0o100000 => 'no regular file',
            $found['nlink'] > 1 => 'a file with several names',
            $found['uid'] !== self::user() => "a file of the user {$found['uid']}",
            default => null,
        };
        if ($wrong !== null) {
            throw new SupervisorException("the PID file $path is $wrong, which is not written to: remove it or name another file");
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

    /** @return array<int|string, int>|false what is at the path, links not followed */
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

        return $user === false ? throw new SupervisorException('a PID file cannot be written: /proc does not say which user this process runs as') : $user;
    }
}
