<?php

declare(strict_types=1);

namespace Weft\Http\Internal;

use Weft\Http\BodyWriter;
use Weft\Http\ClientDisconnectedException;
use Weft\Native\HttpStream;
use Weft\Runtime\CancelledException;
use Weft\Runtime\Internal\Scheduler;

/**
 * Bodies that are made while they are sent.
 *
 * @internal
 */
final class StreamedBody
{
    /**
     * The client that disconnects and the cancellation of the request end it silently; any other failure aborts the response, also the
     * disconnection of another client and the cancellation of another task.
     *
     * @param iterable<string>|\Closure(BodyWriter): void $body
     */
    public static function write(HttpStream $stream, iterable|\Closure $body): void
    {
        $writer = new BodyWriter($stream);
        try {
            self::copy($body, $writer);
            $writer->end();
        } catch (ClientDisconnectedException | CancelledException $thrown) {
            if (!Scheduler::isCancelledBy($thrown) && !$writer->isDisconnected()) {
                throw $thrown;
            }
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
