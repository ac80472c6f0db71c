<?php

declare(strict_types=1);

namespace Weft\Bench\Chaos;

/** The history of a run, in a file and on the terminal. */
final class History
{
    private readonly float $started;

    /** @var resource */
    private $file;

    public function __construct(string $path)
    {
        $this->started = microtime(true);
        $this->file = fopen($path, 'w') ?: throw new \RuntimeException("cannot write {$path}");
    }

    public function note(string $event): void
    {
        $line = sprintf("%8.3f %s\n", $this->seconds(), $event);
        fwrite($this->file, $line);
        fwrite(STDERR, $line);
    }

    public function seconds(): float
    {
        return microtime(true) - $this->started;
    }
}
