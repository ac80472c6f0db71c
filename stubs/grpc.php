<?php

declare(strict_types=1);

namespace Weft\Native;

/** The gRPC calls that arrive on the connections of HTTP servers. */
final class GrpcServer
{
    /**
     * @param list<array{string, bool, ?int, ?float, list<int>, int}> $methods path, `/package.Service/Method`, whether the client
     *     streams, bytes of a message, seconds of a call, the indexes of its concurrency limits, and its lane: 0 unary, 1 stream, 2 watch
     * @param list<array{string, string, int, bool}> $rules for HTTP with JSON: method of HTTP, path with variables, index of the
     *     method, and whether the server streams
     * @param array<string, mixed> $limits the properties of `Weft\Grpc\Limits`, `webOrigins`, and `concurrency`: name, calls in progress
     *     and waiting
     *
     * @throws \Weft\Grpc\InvalidServiceError a path is malformed
     */
    public static function open(array $methods, array $rules, array $limits): GrpcServer
    {
    }

    /** Takes the calls on the connections of that server from now on; where it is exclusive, what is no call is answered 415. */
    public function attach(HttpServer $server, bool $exclusive): void
    {
    }

    /**
     * Events by call id: a `Weft\Grpc\Call` that arrived, or of one handed out before 1 when its client has cancelled
     * it or gone away and 2 when it is past its deadline. Empty when nothing has happened yet.
     *
     * @return array<int, \Weft\Grpc\Call|int>
     */
    public function next(int $max): mixed
    {
    }

    /** An operation that is announced when `next()` has events, once, and again after each call of `next()`. It has no outcome. */
    public function arrivals(): int
    {
    }

    /** How many handlers the limits allow at a time. */
    public function handlers(): int
    {
    }

    /** There are no more than that many fibers for handlers: fewer calls are handled than the limits say. May be called again. */
    public function fit(int $fibers): void
    {
    }

    /**
     * An operation that ends when there are refusals to log: reason, how many, the client of the last one (null on a Unix socket), and
     * what that was told. The first of a reason ends it at once, later ones no more often than every ten seconds.
     */
    public function refusals(): int
    {
    }

    /** How many calls have arrived and not ended, those that wait for their turn included. */
    public function inFlight(): int
    {
    }

    /**
     * Calls that were started, have succeeded and have failed, and when the last was started, in seconds since 1970.
     *
     * @return array{int, int, int, ?float}
     */
    public function callStats(): array
    {
    }
}

/** The synchronous part of a call. Created only by the extension, as a `Weft\Grpc\Call`. */
class GrpcCall
{
    /** Unique in its server. */
    public function id(): int
    {
    }

    /**
     * Index of its method in the list the server was opened with; for HTTP with JSON the number of methods and the index of the rule.
     *
     * @internal
     */
    public function index(): int
    {
    }

    /** `/package.Service/Method` */
    public function method(): string
    {
    }

    /**
     * Fields of the request that the path of a call by HTTP with JSON contains.
     *
     * @internal
     *
     * @return array<string, string>
     */
    public function variables(): array
    {
    }

    /**
     * The query string of a JSON call, without the question mark.
     *
     * @internal
     */
    public function query(): string
    {
    }

    /** The host the client meant to call, as it was sent. */
    public function authority(): string
    {
    }

    /** IP address and port of the other end of the connection; null on a Unix socket. */
    public function peer(): ?string
    {
    }

    /** Whether the connection has TLS. */
    public function isSecure(): bool
    {
    }

    /** @return array<string, list<string>> what the client sent beside its messages; values of names that end in `-bin` are bytes */
    public function metadata(): array
    {
    }

    /** Seconds until the deadline of the client, negative after it; null without a deadline. */
    public function timeLeft(): ?float
    {
    }

    /** Whether the client still waits for messages or the status. */
    public function isOpen(): bool
    {
    }

    /** Whether the message that was read last had been compressed by the client. */
    public function wasCompressed(): bool
    {
    }

    /**
     * The one message of a client that does not stream; the second time it is empty.
     *
     * @internal
     */
    public function message(): string
    {
    }

    /**
     * `message()`, decoded as a message of `Weft\Protobuf\Message`.
     *
     * @internal
     *
     * @template T of object
     *
     * @param class-string<T> $class
     *
     * @return T
     *
     * @throws \Weft\Protobuf\DecodingException if the bytes are no such message, or its values take more memory than `messageMemory()`
     */
    public function request(string $class): object
    {
    }

    /**
     * The limit of the memory of a decoded message in bytes.
     *
     * @internal
     */
    public function messageMemory(): int
    {
    }

    /**
     * The next message as a string, null at the end; an operation with that outcome when none is here.
     *
     * @internal
     *
     * @throws \Weft\Grpc\StatusException the messages are malformed, too large, or were broken off
     */
    public function read(): mixed
    {
    }

    /**
     * Compresses the messages of the answer from now on, or not. Returns whether they will be: the client must take gzip, deflate
     * or zstd, and no message may have been sent before this was first asked for.
     */
    public function compress(bool $wanted): bool
    {
    }

    /**
     * Sends initial metadata now, instead of none with the first message. False when that was done before, the client is gone, or the
     * metadata is larger than the limit, which ends the call with Internal.
     *
     * @param array<string, string|list<string>> $metadata values of names that end in `-bin` are bytes, others printable ASCII
     */
    public function begin(array $metadata): bool
    {
    }

    /**
     * Takes the message in any case. 0, or an operation to wait for before the next message, with the outcome null.
     *
     * @internal
     *
     * @throws \Weft\Grpc\CallEndedException
     */
    public function write(string $message): int
    {
    }

    /**
     * `write()` of a message of `Weft\Protobuf\Message`, encoded in the same step.
     *
     * @internal
     *
     * @throws \Weft\Grpc\CallEndedException
     * @throws \Weft\Protobuf\EncodingException if a field holds what its type cannot express
     */
    public function send(object $message): int
    {
    }

    /**
     * Answers with one message and the status 0. False when the call had ended before.
     *
     * @internal
     *
     * @param array<string, string|list<string>> $trailers
     */
    public function reply(string $message, array $trailers): bool
    {
    }

    /**
     * `reply()` with a message of `Weft\Protobuf\Message`, encoded in the same step, and `handled()`.
     *
     * @internal
     *
     * @param array<string, string|list<string>> $trailers
     *
     * @throws \Weft\Protobuf\EncodingException if a field holds what its type cannot express
     */
    public function answer(object $message, array $trailers): bool
    {
    }

    /**
     * Ends the call. False when it had ended before.
     *
     * @internal
     *
     * @param array<string, string|list<string>> $trailers
     * @param string|null $details of the status of a call by HTTP with JSON: a list in JSON
     */
    public function finish(int $status, string $message, array $trailers, ?string $details = null): bool
    {
    }

    /**
     * Its handler has ended: another call may be handled. Without it that is so once this object is gone.
     *
     * @internal
     */
    public function handled(): void
    {
    }
}

/** A connection to a gRPC server, made when a call needs it, and again when it was lost. */
final class GrpcChannel
{
    /**
     * @param list<array{string, int}> $servers host and port, in order of preference
     * @param bool $is_round_robin every address of every server in turn, instead of the first that can be connected to
     * @param array<string, string|bool|null>|null $tls the properties of `Weft\Grpc\Client\Tls`; null is plain text
     * @param array<string, mixed> $options `connectTimeout`, `pingInterval` (null is never) and `pingTimeout` in seconds,
     *     `messageBytes` of a message of the server, `encoding` of messages to it (null is none), `streamWindow` in bytes
     *
     * @throws \Weft\Grpc\Client\TlsException a file cannot be used
     */
    public static function open(array $servers, bool $is_round_robin, ?array $tls, array $options): GrpcChannel
    {
    }

    /**
     * Starts a call. Nothing is awaited: a failure to connect is the outcome of the call.
     *
     * @param string $method `/package.Service/Method`
     * @param array<string, string|list<string>> $metadata
     * @param float|null $timeout seconds from now; null is unlimited
     * @param int $attempts how often the same call was made before
     * @param bool $waits until a server can be connected to, instead of failing when none can
     */
    public function call(string $method, array $metadata, ?float $timeout, int $attempts, bool $waits): GrpcClientCall
    {
    }
}

/** A call to a server, cancelled when it is dropped before its end. */
final class GrpcClientCall
{
    /**
     * Takes the message in any case. 0, or an operation to wait for before the next message, with the outcome null.
     *
     * @throws \Weft\Grpc\CallEndedException
     */
    public function write(string $message): int
    {
    }

    /** No more messages will be written. */
    public function end(): void
    {
    }

    /** Outcome: the next message as a string, null once the call has ended with Ok. Fails with the status otherwise. */
    public function read(): int
    {
    }

    /** Outcome: the one message, once the call has ended with Ok. Fails with the status otherwise. */
    public function readOnly(): int
    {
    }

    /** @return array<string, list<string>> initial metadata, once a message or the end was read */
    public function head(): array
    {
    }

    /** @return array<string, list<string>> trailing metadata, once the end was read */
    public function trailers(): array
    {
    }

    /** The limit of the memory of a decoded message in bytes. */
    public function messageMemory(): int
    {
    }

    /** Whether the server has answered with more than a status: from here on the call must not be made again. */
    public function hasBegun(): bool
    {
    }

    /** Milliseconds after which the server wants to be asked again, -1 where it does not; null when it did not say. */
    public function pushback(): ?int
    {
    }

    /** Whether it failed before the server began to handle it. */
    public function isUnprocessed(): bool
    {
    }

    public function cancel(): void
    {
    }
}
