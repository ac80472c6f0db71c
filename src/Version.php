<?php

declare(strict_types=1);

namespace Weft;

/** Which Weft this is. */
final class Version
{
    /** The version of the PHP library; the extension must have the same. */
    public const LIBRARY = '0.2.0-dev';

    /**
     * A hash of the files in `stubs/`, the interface of the extension that the library calls. The extension must have the same, because
     * between two releases the interface changes and the version does not.
     */
    public const INTERFACE_HASH = '169d78bf';

    /** The version of the loaded extension, null where none is loaded. */
    public static function extension(): ?string
    {
        $version = \phpversion('weft');

        return $version === false ? null : $version;
    }

    /** The hash of the interface of the loaded extension; null without one, and of one that does not say it yet. */
    public static function extensionInterfaceHash(): ?string
    {
        return \function_exists('Weft\Native\interfaceHash') ? Native\interfaceHash() : null;
    }
}
