<?php

declare(strict_types=1);

namespace Weft\Tests\Runtime;

use Weft\Tests\Execution;
use Weft\Tests\Extension;

/**
 * Runs a PHP program that may end the process it runs in.
 */
final class Subprocess
{
    /**
     * @param string $code follows `use function Weft\{…}`
     * @param array{string, int}|null $kill a line to wait for and the signal to send then
     * @param list<string> $extensions of PHP that the program needs, in the order in which they can be loaded; those that PHP has built in are skipped
     * @param list<string> $options of PHP, such as `opcache.jit=tracing`
     * @param list<string> $under the command that PHP is an argument of, such as `strace -f`
     */
    public static function run(string $code, ?array $kill = null, array $extensions = [], array $options = [], array $under = []): Execution
    {
        $file = tempnam(sys_get_temp_dir(), 'weft');
        file_put_contents($file, self::program($code));
        try {
            return Execution::of(
                [...$under, PHP_BINARY, '-n', ...self::extensions(['pcntl', 'posix', ...$extensions]), ...self::options($options), '-d', 'display_errors=stderr', $file],
                kill: $kill,
            );
        } finally {
            unlink($file);
        }
    }

    private static function program(string $code): string
    {
        $autoload = var_export(dirname(__DIR__, 2) . '/autoload.php', true);

        return <<<PHP
            <?php
            require $autoload;
            use Weft\Runtime\{CancelledException, Channel, Mutex, Semaphore};
            use function Weft\{all, async, current, delay, detach, run, scope, shield, signal, tasks, timeout, yieldNow};
            $code
            PHP;
    }

    /**
     * @param list<string> $options
     *
     * @return list<string>
     */
    private static function options(array $options): array
    {
        return array_merge(...array_map(static fn(string $option): array => ['-d', $option], $options));
    }

    /**
     * @param list<string> $names
     *
     * @return list<string>
     */
    private static function extensions(array $names): array
    {
        $directory = ini_get('extension_dir');
        $arguments = [];
        foreach ($names as $name) {
            if (is_file("$directory/$name.so")) {
                array_push($arguments, '-d', ($name === 'opcache' ? 'zend_' : '') . "extension=$name");
            }
        }

        return [...$arguments, '-d', 'extension=' . Extension::library()];
    }
}
