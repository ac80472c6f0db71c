<?php

declare(strict_types=1);

namespace Weft\Tests\Cli;

/** A directory with an application for `weft run`, removed at the end. */
final class Application
{
    public readonly string $directory;
    public readonly string $file;

    /** @param string $code the body of the main task */
    public function __construct(string $code)
    {
        $this->directory = \sys_get_temp_dir() . '/weft-' . \bin2hex(\random_bytes(6));
        \mkdir($this->directory);
        $this->file = "$this->directory/app.php";
        $this->write($code);
    }

    public function __destruct()
    {
        foreach (\glob("$this->directory/*") ?: [] as $file) {
            \unlink($file);
        }
        \rmdir($this->directory);
    }

    /** An application that says it is ready and ends when it is told to. */
    public static function idle(): self
    {
        return new self('Worker::untilStopped();');
    }

    public function write(string $code): void
    {
        \file_put_contents($this->file, $this->program($code));
    }

    public function program(string $code): string
    {
        $autoload = \var_export(\dirname(__DIR__, 2) . '/autoload.php', true);

        return <<<PHP
            <?php
            require $autoload;
            use Weft\\Workers\\Worker;
            use function Weft\\{all, async, current, delay, detach, run, scope, shield, signal, tasks, timeout};
            final class Handler
            {
                public static function blocks(): void { while (true) { \\strlen('x'); } }
                /** Waits for a file of that name in the directory of the application. */
                public static function waitsFor(string \$file): void { while (!\\is_file(__DIR__ . "/\$file")) { delay(0.07); } }
            }
            run(static function (): void {
                $code
            });
            PHP;
    }
}
