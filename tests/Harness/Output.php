<?php

declare(strict_types=1);

namespace Weft\Tests\Harness;

/** @internal */
final class Output
{
    /** The last lines of a file, for a message. */
    public static function tail(string $file, int $lines = 25): string
    {
        $all = \explode("\n", \trim((string) @\file_get_contents($file)));

        return \implode("\n", \array_slice($all, -$lines));
    }
}
