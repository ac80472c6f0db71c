<?php

declare(strict_types=1);

namespace Weft\Internal;

/**
 * Loads classes before they are needed.
 *
 * PHP opens the file of a class when the class is first used. A server that has run out of descriptors (EMFILE) cannot open a file:
 * the first request, refusal or failure after that would end the process with a fatal error. So a server loads the classes with
 * which it serves when it starts.
 *
 * @internal
 */
final class Preload
{
    private const SOURCES = __DIR__ . '/..';

    /** @var array<string, true> */
    private static array $loaded = [];

    /** @param string ...$directories of `src`, such as `Http/Internal`; without subdirectories */
    public static function directories(string ...$directories): void
    {
        foreach ($directories as $directory) {
            if (isset(self::$loaded[$directory])) {
                continue;
            }
            self::$loaded[$directory] = true;
            // A file whose name begins with a small letter holds functions.
            foreach (\glob(self::SOURCES . "/$directory/[A-Z]*.php") ?: [] as $file) {
                \class_exists('Weft\\' . \strtr($directory, '/', '\\') . '\\' . \basename($file, '.php'));
            }
        }
    }
}
