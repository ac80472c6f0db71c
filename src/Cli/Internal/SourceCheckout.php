<?php

declare(strict_types=1);

namespace Weft\Cli\Internal;

/**
 * Weft's own repository, where the extension is built but not installed.
 *
 * @internal
 */
final class SourceCheckout
{
    /**
     * Replaces this process by one that has loaded the extension of this checkout; returns where there is none.
     *
     * @param list<string> $arguments
     */
    public static function runWithExtension(string $program, array $arguments): void
    {
        $library = self::library(\dirname(__DIR__, 3));
        if ($library === null || !\function_exists('pcntl_exec')) {
            return;
        }
        \pcntl_exec(\PHP_BINARY, [...Interpreter::options(), '-d', "extension=$library", $program, ...$arguments]);
    }

    /** The newer one of the two builds, null outside a checkout. */
    private static function library(string $root): ?string
    {
        if (!\is_file("$root/Cargo.toml")) {
            return null;
        }
        $builds = \array_filter(["$root/target/release/libweft.so", "$root/target/debug/libweft.so"], \is_file(...));
        \usort($builds, static fn(string $a, string $b): int => (int) \filemtime($b) <=> (int) \filemtime($a));

        return $builds[0] ?? null;
    }
}
