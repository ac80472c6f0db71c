<?php

declare(strict_types=1);

namespace Weft\Cli\Internal;

/**
 * How this PHP was started, so that another one can be started alike.
 *
 * @internal
 */
final class Interpreter
{
    /** @return list<string> what stood between `php` and the script, such as `-d extension=…` */
    public static function options(): array
    {
        $words = \explode("\0", \rtrim((string) @\file_get_contents('/proc/self/cmdline'), "\0"));
        $script = \array_search($_SERVER['argv'][0] ?? '', $words, true);

        return $script === false || $script === 0 ? [] : \array_slice($words, 1, $script - 1);
    }
}
