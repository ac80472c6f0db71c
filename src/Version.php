<?php

declare(strict_types=1);

namespace Weft;

/** Which Weft this is. */
final class Version
{
    /** The version of the PHP library; the extension must have the same. */
    public const LIBRARY = '0.1.0';

    /** The version of the loaded extension, null where none is loaded. */
    public static function extension(): ?string
    {
        $version = \phpversion('weft');

        return $version === false ? null : $version;
    }
}
