<?php

declare(strict_types=1);

namespace Weft\Http\Internal;

use Weft\Http\BodyWriter;
use Weft\Http\ClientDisconnectedException;
use Weft\Native\HttpStream;
use Weft\Runtime\CancelledException;

/**
 * Bodies that are made while they are sent.
 *
 * @internal
 */
final class StreamedBody
{
    /**
     * A client that disconnects ends it silently; any other failure aborts the response.
     *
     * @param iterable<string>|\Closure(BodyWriter): void $body
     */
    public static function write(HttpStream $stream, iterable|\Closure $body): void
    {
        try {
            $writer = new BodyWriter($stream);
            self::copy($body, $writer);
            $writer->end();
        } catch (ClientDisconnectedException | CancelledException) {
        } finally {
            $stream->abort();
        }
    }

    /** @param iterable<string>|\Closure(BodyWriter): void $body */
    public static function copy(iterable|\Closure $body, BodyWriter $writer): void
    {
        if ($body instanceof \Closure) {
            $body($writer);
        } else {
            foreach ($body as $chunk) {
                $writer->write($chunk);
            }
        }
    }
}
