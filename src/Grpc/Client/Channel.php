<?php

declare(strict_types=1);

namespace Weft\Grpc\Client;

/**
 * The transport of generated clients. `$method` is the path, such as `/api.Users/Get`; `Weft\Protobuf\Codec` encodes the
 * messages.
 *
 * `$timeout` is in seconds from now; null uses the channel's. Names in `$metadata` are lower case; values of names that
 * end in `-bin` are bytes, all others printable ASCII.
 */
interface Channel
{
    /**
     * @template T of object
     *
     * @param class-string<T> $response
     * @param array<string, string|list<string>> $metadata
     *
     * @return T
     */
    public function unary(string $method, object $request, string $response, ?float $timeout, array $metadata): object;

    /**
     * @template T of object
     *
     * @param class-string<T> $response
     * @param array<string, string|list<string>> $metadata
     *
     * @return iterable<T> as they arrive; leaving the loop early cancels the call
     */
    public function serverStreaming(string $method, object $request, string $response, ?float $timeout, array $metadata): iterable;

    /**
     * @template T of object
     *
     * @param iterable<object> $requests sent as they are produced, no faster than the server reads
     * @param class-string<T> $response
     * @param array<string, string|list<string>> $metadata
     *
     * @return T
     */
    public function clientStreaming(string $method, iterable $requests, string $response, ?float $timeout, array $metadata): object;

    /**
     * @template T of object
     *
     * @param iterable<object> $requests sent as they are produced, no faster than the server reads
     * @param class-string<T> $response
     * @param array<string, string|list<string>> $metadata
     *
     * @return iterable<T> as they arrive, while requests are still being sent; leaving the loop early cancels the call
     */
    public function bidiStreaming(string $method, iterable $requests, string $response, ?float $timeout, array $metadata): iterable;
}
