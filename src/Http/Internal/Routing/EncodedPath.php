<?php

declare(strict_types=1);

namespace Weft\Http\Internal\Routing;

/**
 * One spelling of a path for those that clients use: some send `|` and `é` as they are, others percent-encoded, with hexadecimal digits in
 * upper or lower case (RFC 3986, section 6.2.2.1). Characters that a path may contain keep their spelling: `%61` is not `a`, and `%2F` is no
 * separator.
 *
 * @internal
 */
final class EncodedPath
{
    /** A percent-encoding in lower case, or a byte that is neither `pchar` nor the slash (RFC 3986, section 3.3). */
    private const OTHER_SPELLING = '~%(?:[0-9A-F][a-f]|[a-f][0-9A-Fa-f])|[^%A-Za-z0-9._\~!$&\'()*+,;=:@/-]~';

    public static function of(string $path): string
    {
        return \preg_match(self::OTHER_SPELLING, $path) !== 1 ? $path : (string) \preg_replace_callback(
            self::OTHER_SPELLING,
            static fn(array $found): string => $found[0][0] === '%' ? \strtoupper($found[0]) : \rawurlencode($found[0]),
            $path,
        );
    }
}
