<?php

declare(strict_types=1);

namespace Weft\Workers\Internal;

use Weft\Workers\SupervisorFailed;

/**
 * A file with the pid of the supervisor. A lock on it, not the number in it, says whether that one still runs: a file that
 * was left behind by a killed one is taken over, whoever has got its pid meanwhile.
 *
 * @internal
 */
final class PidFile
{
    /** @param resource $file */
    private function __construct(private readonly string $path, private readonly mixed $file)
    {
    }

    /** @throws SupervisorFailed it is another supervisor's, or cannot be written */
    public static function take(string $path): self
    {
        $file = @\fopen($path, 'c+');
        if ($file === false) {
            throw new SupervisorFailed("cannot write the PID file $path: " . (\error_get_last()['message'] ?? 'unknown reason'));
        }
        if (!\flock($file, \LOCK_EX | \LOCK_NB)) {
            $pid = \trim((string) \stream_get_contents($file)) ?: '(none written)';
            throw new SupervisorFailed("the PID file $path belongs to a supervisor that runs, with pid $pid");
        }
        \ftruncate($file, 0);
        \fwrite($file, \getmypid() . "\n");
        \fflush($file);

        return new self($path, $file);
    }

    public function remove(): void
    {
        @\unlink($this->path);
        \fclose($this->file);
    }
}
