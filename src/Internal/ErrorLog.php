<?php

declare(strict_types=1);

namespace Weft\Internal;

/**
 * PHP's own log (`error_log`), for failures of what would report them: a logger, or an error handler of the application.
 *
 * @internal
 */
final class ErrorLog
{
    /** Bytes of each part at most. */
    private const MAX_BYTES = 8_192;

    /**
     * Writes one line. Each part is cut by itself, so that a long message of an exception does not hide what comes behind it. Control
     * characters are escaped.
     */
    public static function write(string ...$parts): void
    {
        $parts = \array_map(static fn(string $part): string => Printable::cut($part, self::MAX_BYTES), $parts);
        \error_log(Printable::line('Weft: ' . \implode('', $parts)));
    }
}
