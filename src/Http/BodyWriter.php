<?php

declare(strict_types=1);

namespace Weft\Http;

use Weft\Http\Internal\SlowClients;
use Weft\Native;
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

    /** Bytes that were queued since the client was behind, instead of waiting for it. */
    private int $queued = 0;

    /** @internal */
    public function __construct(private readonly HttpStream $stream)
    {
    }

    /**
     * Sends a chunk of the body. Waits while more than 64 KiB are buffered for the client. In an {@see ApplicationPool} a body that waits holds an instance:
     * where half of them wait for slow clients, up to 8 MiB are queued instead.
     *
     * @throws ClientDisconnectedException
     */
    public function write(string $chunk): void
    {
        $op = $this->begin($chunk);
        if ($op === 0) {
            $this->queued = 0;
        } elseif ($this->slowClients === null || $this->slowClients->begin()) {
            try {
                $this->waitFor($op);
            } finally {
                $this->slowClients?->end();
            }
        } else {
            $this->queue($op, \strlen($chunk));
        }
    }

    /**
     * Sends a chunk without waiting, however much is buffered for the client.
     *
     * @internal
     *
     * @return int 0, or the operation that `write()` would wait for; to be cancelled
     *
     * @throws ClientDisconnectedException
     */
    public function begin(string $chunk): int
    {
        // A coding has bytes for each piece, also for an empty one.
        return $this->stream->write($this->encoder === null || $chunk === '' ? $chunk : $this->encoder->write($chunk));
    }

    /**
     * A cancellation of the task gives it up, and the chunk is sent nevertheless.
     *
     * @throws ClientDisconnectedException
     */
    #[WaitsFor('an HTTP client to read the response')]
    private function waitFor(int $op): void
    {
        Scheduler::await($op);
        $this->queued = 0;
    }

    #[WaitsFor('an HTTP client to read the response')]
    private function queue(int $op, int $bytes): void
    {
        $this->queued += $bytes;
        if ($this->queued > SlowClients::QUEUED) {
            $this->waitFor($op);

            return;
        }
        Native\cancel($op);
        // A client that reads catches up meanwhile, and others are served.
        Scheduler::await(Native\sleep(0.0));
    }

    /** @internal Whether the client has disconnected. */
    public function isDisconnected(): bool
    {
        try {
            $op = $this->begin('');
            $op === 0 || Native\cancel($op);

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
