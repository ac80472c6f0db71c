<?php

declare(strict_types=1);

namespace Weft\Bus\Internal\Persistence;

/**
 * Limits the rows with messages that are read at once: there may be thousands of any size, and a worker that ran out of memory would do so
 * again when it is restarted.
 *
 * @internal
 */
final class RowBatch
{
    /** Expression for the bytes of a row with a message. */
    public const SIZE = 'octet_length(headers) + octet_length(body)';

    /** Bytes of headers and bodies; they are in memory several times. One row may have more. */
    private const MAX_BYTES = 4 << 20;

    /**
     * @template K of string|int
     *
     * @param list<array<string, mixed>> $rows in order, with the columns `$key` and `bytes`
     * @return list<K> keys of the first rows that fit, at least of one
     */
    public static function fitting(array $rows, string $key): array
    {
        $keys = [];
        $bytes = 0;
        foreach ($rows as $row) {
            $bytes += $row['bytes'];
            if ($keys !== [] && $bytes > self::MAX_BYTES) {
                break;
            }
            $keys[] = $row[$key];
        }

        /** @var list<K> */
        return $keys;
    }
}
