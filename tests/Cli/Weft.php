<?php

declare(strict_types=1);

namespace Weft\Tests\Cli;

use Weft\Tests\Execution;
use Weft\Tests\Extension;

/** Runs `bin/weft` to its end. */
final class Weft
{
    /**
     * @param list<string> $arguments
     * @param list<string> $php options of the interpreter, in place of the extension that this process has loaded
     */
    public static function run(array $arguments, ?array $php = null): Execution
    {
        return Execution::of(self::command($arguments, $php));
    }

    /**
     * @param list<string> $arguments
     * @param list<string>|null $php
     *
     * @return list<string>
     */
    public static function command(array $arguments, ?array $php = null): array
    {
        return [\PHP_BINARY, ...$php ?? ['-d', 'extension=' . Extension::library()], \dirname(__DIR__, 2) . '/bin/weft', ...$arguments];
    }
}
