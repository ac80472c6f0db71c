<?php

declare(strict_types=1);

namespace Weft\Cli\Internal;

/**
 * The arguments and the environment of this PHP process, to start another one with the same.
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

    /**
     * Without what `putenv()` has added since: another process reads a `.env` file again, and leaves variables alone that it has.
     *
     * @return array<string, string>
     */
    public static function environment(): array
    {
        $variables = [];
        foreach (\explode("\0", \rtrim((string) @\file_get_contents('/proc/self/environ'), "\0")) as $line) {
            [$name, $value] = \explode('=', $line, 2) + ['', ''];
            $name === '' || $variables[$name] = $value;
        }

        // A program with capabilities cannot read it, and one that has changed its title has overwritten it.
        return $variables === [] ? \getenv() : $variables;
    }
}
