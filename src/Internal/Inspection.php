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

    /** Whether a program is loaded to be described: then it must not listen either. */
    public static function isActive(): bool
    {
        return self::$isActive;
    }

    /**
     * The value that a PHP file returns, or that the returned closure returns if it takes no arguments, and the application that it would have run.
     *
     * @return array{mixed, App|null}
     *
     * @throws \InvalidArgumentException there is no such file
     */
    public static function load(string $file): array
    {
        if (!\is_file($file)) {
            throw new \InvalidArgumentException("There is no file {$file}.");
        }
        [self::$isActive, self::$app] = [true, null];
        try {
            // Without a class: the program's closures have the scope that they have when it runs.
            $load = \Closure::bind(static fn(string $file): mixed => require $file, null, null);
            $returned = $load($file);
            if ($returned instanceof \Closure && !self::takesArguments($returned)) {
                $returned = $returned();
            }

            return [$returned, self::$app];
        } finally {
            [self::$isActive, self::$app] = [false, null];
        }
    }

    /** The value that a file has returned, for an error. */
    public static function describe(mixed $returned): string
    {
        return match (true) {
            $returned === 1 => 'nothing',
            $returned instanceof \Closure => 'a closure that takes arguments',
            default => \get_debug_type($returned),
        };
    }

    /**
     * @return array<string, Router> by address
     *
     * @throws \InvalidArgumentException the program neither runs an App nor returns a Router
     */
    public static function routers(string $file): array
    {
        [$returned, $app] = self::load($file);
        $found = $app ?? $returned;

        return match (true) {
            $found instanceof App => $found->routers(),
            $found instanceof Router => ['' => $found],
            default => throw new \InvalidArgumentException("{$file} must run a Weft\App, or return one or a Weft\Http\Router; it returned " . self::describe($returned) . '.'),
        };
    }

    private static function takesArguments(\Closure $closure): bool
    {
        return (new \ReflectionFunction($closure))->getNumberOfRequiredParameters() > 0;
    }
}
