<?php

declare(strict_types=1);

namespace Weft\Cli\Internal;

/**
 * The arguments of this PHP process, to start another one with the same.
 *
 * @internal
 */
final class Interpreter
{
    /** @return list<string> the options between `php` and the script, such as `-d extension=…` */
    public static function options(): array
    {
        $words = \explode("\0", \rtrim((string) @\file_get_contents('/proc/self/cmdline'), "\0"));
        $script = \array_search($_SERVER['argv'][0] ?? '', $words, true);

        return $script === false || $script === 0 ? [] : \array_slice($words, 1, $script - 1);
    }
}
