<?php

declare(strict_types=1);

namespace Weft\Internal;

use Weft\App;
use Weft\Http\Router;

/**
 * Loads the program of an application without running it, for commands that describe it.
 *
 * @internal
 */
final class Inspection
{
    private static ?App $app = null;
    private static bool $isActive = false;

    /**
     * Whether the application is loaded to be described: then it must not run.
     */
    public static function takes(App $app): bool
    {
        if (self::$isActive) {
            self::$app = $app;
        }

        return self::$isActive;
    }

    /**
     * @return array<string, Router> by address
     *
     * @throws \InvalidArgumentException the program neither runs an App nor returns a Router
     */
    public static function routers(string $file): array
    {
        if (!\is_file($file)) {
            throw new \InvalidArgumentException("There is no file {$file}.");
        }
        [self::$isActive, self::$app] = [true, null];
        try {
            // Without a class: the program's closures have the scope that they have when it runs.
            $load = \Closure::bind(static fn(string $file): mixed => require $file, null, null);
            $returned = $load($file);
        } finally {
            self::$isActive = false;
        }
        /** @var App|null $app run() has set it */
        $app = self::$app;
        $found = $app ?? $returned;

        return match (true) {
            $found instanceof App => $found->routers(),
            $found instanceof Router => ['' => $found],
            default => throw new \InvalidArgumentException("{$file} must run a Weft\App, or return one or a Weft\Http\Router; it returned " . ($returned === 1 ? 'nothing' : \get_debug_type($returned)) . '.'),
        };
    }
}
