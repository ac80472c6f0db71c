<?php

declare(strict_types=1);

namespace Weft\Cli\Internal;

use Weft\Internal\LoadedExtension;

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
        $library = LoadedExtension::build(\dirname(__DIR__, 3));
        if ($library === null || !\function_exists('pcntl_exec')) {
            return;
        }
        \pcntl_exec(\PHP_BINARY, [...Interpreter::options(), '-d', "extension=$library", $program, ...$arguments]);
    }
}
