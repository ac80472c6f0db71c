<?php

declare(strict_types=1);

namespace Weft\Examples\Customers;

/**
 * Keeps a second start away from the same database: both would count the rows and events of the other as their own.
 *
 * The kernel frees the lock when the process ends, however it ends.
 */
final class Lock
{
    /** @param resource $file */
    private function __construct(private $file)
    {
    }

    /** @throws AlreadyRunning if another process holds it */
    public static function take(string $path): self
    {
        $file = \fopen($path, 'c+') ?: throw new \RuntimeException("{$path} cannot be opened");
        if (!\flock($file, \LOCK_EX | \LOCK_NB)) {
            throw new AlreadyRunning(\sprintf(
                'The customers example already runs on this database, as process %s: wait until it ends, or stop it.',
                \trim((string) \stream_get_contents($file)) ?: '?',
            ));
        }
        \ftruncate($file, 0);
        \fwrite($file, (string) \getmypid());
        \fflush($file);

        return new self($file);
    }

    public function release(): void
    {
        \fclose($this->file);
    }
}
