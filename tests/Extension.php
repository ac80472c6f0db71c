<?php

declare(strict_types=1);

namespace Weft\Tests;

/** The extension of this process, for the programs that tests start. */
final class Extension
{
    /** The file from which this process has loaded it. */
    public static function library(): string
    {
        \preg_match('{\S+/libweft\.so}', (string) \file_get_contents('/proc/self/maps'), $path);

        return $path[0] ?? 'weft';
    }
}
