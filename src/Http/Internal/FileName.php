<?php

declare(strict_types=1);

namespace Weft\Http\Internal;

/**
 * Converts file names between clients and the file system.
 *
 * @internal
 */
final class FileName
{
    /** The limit of common file systems in bytes. */
    private const MAX_BYTES = 255;

    /** A safe file name without a path: a client may send any bytes. */
    public static function safe(string $name): string
    {
        $name = \substr($name, (int) \strrpos('/' . \strtr($name, '\\', '/'), '/'));
        if (\preg_match('//u', $name) !== 1) {
            $name = (string) \preg_replace('/[^\x20-\x7e]/', '_', $name);
        }
        // Control characters, bidirectional overrides, and characters with a meaning in some file system.
        $name = (string) \preg_replace(['/[\p{C}\p{Zl}\p{Zp}]/u', '/[<>:"|?*]/'], ['', '_'], $name);
        $name = self::shortened(\trim($name, ' .'));

        return $name === '' ? 'file' : $name;
    }

    /** `Content-Disposition: attachment` with a name for old and new clients (RFC 6266 §4.3). */
    public static function attachment(string $name): string
    {
        $plain = (string) \preg_replace('/[^\x20-\x7e]|["\\\\%]/', '_', $name);

        return "attachment; filename=\"$plain\"" . ($plain === $name ? '' : "; filename*=UTF-8''" . \rawurlencode($name));
    }

    /** Shortens the name and keeps its extension. */
    private static function shortened(string $name): string
    {
        if (\strlen($name) <= self::MAX_BYTES) {
            return $name;
        }
        $extension = \preg_match('/\.[^. ]{1,16}$/D', $name, $found) === 1 ? $found[0] : '';
        $room = self::MAX_BYTES - \strlen($extension);
        $start = \substr($name, 0, $room);
        while (\preg_match('//u', $start) !== 1) {
            $start = \substr($start, 0, -1);
        }

        return \rtrim($start, ' .') . $extension;
    }
}
