<?php

declare(strict_types=1);

namespace Weft\Http;

use Weft\Http\Internal\SlowClients;
use Weft\Native\HttpEncoder;
use Weft\Native\HttpStream;
use Weft\Runtime\Internal\Scheduler;
use Weft\Runtime\Internal\WaitsFor;

/** Writes the body of a streamed response. */
final class BodyWriter
{
    /** @var array<string, string|list<string>> */
    private array $trailers = [];
    private ?HttpEncoder $encoder = null;

    /** @internal Null where the response holds no instance of an application. */
    public ?SlowClients $slowClients = null;

    /** @internal */
    public function __construct(private readonly HttpStream $stream)
    {
    }

    /**
     * Sends a chunk of the body. Waits while more than 64 KiB are buffered for the client.
     *
     * @throws ClientDisconnectedException
     */
    #[WaitsFor('an HTTP client to read the response')]
    public function write(string $chunk): void
    {
        $op = $this->begin($chunk);
        if ($op !== 0) {
            $this->waitFor($op);
        }
    }

    /**
     * Sends a chunk without waiting, however much is buffered for the client.
     *
     * @internal
     *
     * @return int 0, or the operation that `write()` would wait for
     *
     * @throws ClientDisconnectedException
     */
    public function begin(string $chunk): int
    {
        // A coding has bytes for each piece, also for an empty one.
        return $this->stream->write($this->encoder === null || $chunk === '' ? $chunk : $this->encoder->write($chunk));
    }

    /**
     * @internal Waits for an operation of {@see begin()}; a cancellation of the task gives it up, and the chunk is sent nevertheless.
     *
     * @throws ClientDisconnectedException
     */
    #[WaitsFor('an HTTP client to read the response')]
    public function waitFor(int $op): void
    {
        Scheduler::await($op);
    }

    /** @internal Whether the client has disconnected. */
    public function isDisconnected(): bool
    {
        try {
            $op = $this->begin('');
            $op === 0 || \Weft\Native\cancel($op);

            return false;
        } catch (ClientDisconnectedException) {
            return true;
        }
    }

    /**
     * Adds a trailer field. Clients that cannot read trailers ignore it. An HTTP/1.1 client gets it only if it has sent `TE: trailers`.
     */
    public function trailer(string $name, string $value): void
    {
        $this->trailers[$name] = $value;
    }

    /** @internal Compresses the chunks written from now on. */
    public function encode(HttpEncoder $encoder): void
    {
        $this->encoder = $encoder;
    }

    /** @internal */
    public function end(): void
    {
        if ($this->encoder !== null) {
            $this->stream->write($this->encoder->finish());
        }
        $this->stream->end($this->trailers);
    }
}
