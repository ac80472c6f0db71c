<?php

declare(strict_types=1);

namespace Weft\Tests\Bus\Fixtures;

use function Weft\delay;

/** Servers of one test alone, which a script of the repository starts and stops, in a directory of their own. */
final class ServerScript
{
    public readonly string $directory;

    /** @param string $name of the script, such as services */
    public function __construct(private readonly string $name)
    {
        $this->directory = \sys_get_temp_dir() . "/weft-{$name}-" . \bin2hex(\random_bytes(4));
        \mkdir($this->directory, 0o755);
        // A fatal error in a test must not leave servers behind.
        \register_shutdown_function($this->remove(...));
    }

    /** @return string what it says; nothing else goes on meanwhile */
    public function run(string ...$arguments): string
    {
        return $this->end($this->start(...$arguments));
    }

    /** The same while other tasks go on. Call it inside `Weft\run()`. */
    public function runBeside(string ...$arguments): string
    {
        $process = $this->start(...$arguments);
        while (($status = \proc_get_status($process))['running']) {
            delay(0.02);
        }

        return $this->end($process, $status['exitcode']);
    }

    /** Stops the servers and deletes the directory. */
    public function remove(): void
    {
        if (\is_dir($this->directory)) {
            $this->run('purge');
            \array_map(\unlink(...), \glob("{$this->directory}/*") ?: []);
            \rmdir($this->directory);
        }
    }

    /** @return resource */
    private function start(string ...$arguments)
    {
        $output = ['file', "{$this->directory}/output", 'w'];
        $command = [\dirname(__DIR__, 3) . "/scripts/{$this->name}", ...$arguments];
        $process = \proc_open($command, [['file', '/dev/null', 'r'], $output, ['redirect', 1]], $pipes, null, ['WEFT_VAR' => $this->directory] + \getenv());
        \assert(\is_resource($process));

        return $process;
    }

    /**
     * @param resource $process
     * @param int|null $code    of one that has ended already
     */
    private function end($process, ?int $code = null): string
    {
        $closed = \proc_close($process);
        $code ??= $closed;
        $output = (string) \file_get_contents("{$this->directory}/output");
        if ($code !== 0) {
            throw new \RuntimeException("scripts/{$this->name} ended with {$code}: {$output}");
        }

        return $output;
    }
}
