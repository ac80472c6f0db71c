<?php

declare(strict_types=1);

namespace Weft\Tests\Cli;

use Weft\Tests\Extension;

/** Runs `bin/weft` to its end. */
final class Weft
{
    /** Seconds. It only ends a hang. */
    private const DEADLINE = 60;

    private function __construct(
        public readonly int $exitCode,
        public readonly string $output,
        public readonly string $errors,
    ) {
    }

    /**
     * @param list<string> $arguments
     * @param list<string> $php options of the interpreter, in place of the extension that this process has loaded
     */
    public static function run(array $arguments, ?array $php = null): self
    {
        $directory = \sys_get_temp_dir();
        [$out, $err] = [\tempnam($directory, 'weft'), \tempnam($directory, 'weft')];
        try {
            $process = \proc_open(
                ['timeout', (string) self::DEADLINE, ...self::command($arguments, $php)],
                [1 => ['file', $out, 'w'], 2 => ['file', $err, 'w']],
                $pipes,
            );

            return new self(\proc_close($process), (string) \file_get_contents($out), (string) \file_get_contents($err));
        } finally {
            \unlink($out);
            \unlink($err);
        }
    }

    /**
     * @param list<string> $arguments
     * @param list<string>|null $php
     *
     * @return list<string>
     */
    public static function command(array $arguments, ?array $php = null): array
    {
        return [\PHP_BINARY, ...$php ?? ['-d', 'extension=' . Extension::library()], \dirname(__DIR__, 2) . '/bin/weft', ...$arguments];
    }
}
