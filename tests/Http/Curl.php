<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

/** A curl whose output is read while it runs. */
final class Curl
{
    /** @var resource */
    private $process;
    /** @var resource */
    private $output;

    /** @param list<string> $arguments */
    public function __construct(array $arguments)
    {
        $this->process = proc_open(['curl', '-sS', '-N', ...$arguments], [['file', '/dev/null', 'r'], ['pipe', 'w'], ['redirect', 1]], $pipes);
        $this->output = $pipes[1];
    }

    public function readUntil(string $text): string
    {
        return ServerProcess::readUntil($this->output, $text);
    }

    /** The rest of its output. */
    public function end(): string
    {
        $rest = (string) stream_get_contents($this->output);
        proc_close($this->process);

        return $rest;
    }

    /** Goes away in the middle of the answer. */
    public function kill(): void
    {
        proc_terminate($this->process, 9);
        proc_close($this->process);
    }
}
