<?php

declare(strict_types=1);

namespace Weft\Cli\Internal;

/**
 * A checkout of Weft's repository, where the extension is built but not installed.
 *
 * @internal
 */
final class SourceCheckout
{
    /**
     * Replaces this process by one with the extension of this checkout. Returns if there is none.
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

    /** The newer of the two builds, null outside of a checkout. */
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
