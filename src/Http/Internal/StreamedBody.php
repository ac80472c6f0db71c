<?php

declare(strict_types=1);

namespace Weft\Http\Internal;

use Weft\Http\BodyWriter;
use Weft\Http\ClientDisconnectedException;
use Weft\Native\HttpStream;
use Weft\Runtime\CancelledException;
use Weft\Runtime\Internal\CallScope;
use Weft\Runtime\Internal\CallSites;
use Weft\Runtime\Internal\Scheduler;
use Weft\UsageError;

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
     * @param iterable<string>|\Closure(BodyWriter): mixed $body
     */
    public static function write(HttpStream $stream, iterable|\Closure $body): void
    {
        $writer = new BodyWriter($stream);
        try {
            // The body ends with the tasks that it has started.
            CallScope::call(self::copy(...), $body, $writer);
            $writer->end();
        } catch (ClientDisconnectedException | CancelledException $thrown) {
            if (!Scheduler::isCancelledBy($thrown) && !$writer->isDisconnected()) {
                throw $thrown;
            }
        } finally {
            $stream->abort();
        }
    }

    /**
     * @param iterable<string>|\Closure(BodyWriter): mixed $body
     *
     * @throws UsageError a function returned something other than chunks
     */
    public static function copy(iterable|\Closure $body, BodyWriter $writer): void
    {
        $chunks = $body instanceof \Closure ? $body($writer) : $body;
        if (\is_iterable($chunks)) {
            foreach ($chunks as $chunk) {
                $writer->write($chunk);
            }
        } elseif ($chunks !== null) {
            throw self::unwritten($body, $chunks);
        }
    }

    /** A result of a function that would get lost. */
    public static function unwritten(mixed $body, mixed $result): UsageError
    {
        $function = $body instanceof \Closure ? ' ' . CallSites::nameOf($body) . ' at ' . CallSites::originOf($body) : '';

        return new UsageError("The function{$function} of a streamed response returned " . \get_debug_type($result) . ', which is not sent: pass it to the writer, or yield it');
    }
}
