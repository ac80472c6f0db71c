<?php

declare(strict_types=1);

namespace Weft;

/** Which Weft this is. */
final class Version
{
    /** The version of the PHP library; the extension must have the same. */
    public const LIBRARY = '0.1.0';

    /**
     * The native interface that the library calls: a hash of the files in `stubs/`. The extension must have the same, because
     * between two releases the interface changes and the version does not.
     */
    public const CONTRACT = 'e0f42530';

    /** The version of the loaded extension, null where none is loaded. */
    public static function extension(): ?string
    {
        $version = \phpversion('weft');

        return $version === false ? null : $version;
    }

    /** The native interface of the loaded extension; null without one, and of one that does not say it yet. */
    public static function extensionContract(): ?string
    {
        return \function_exists('Weft\Native\contract') ? Native\contract() : null;
    }
}
