<?php

declare(strict_types=1);

namespace Weft\Grpc;

/** Options of {@see \Weft\App::grpc()} and {@see Server}. The defaults suit a service that trusted clients call. */
final class ServerOptions
{
    /** @var list<\Closure(Call, mixed, \Closure(mixed): mixed): mixed> */
    public readonly array $interceptors;

    /**
     * @param array<callable(Call, mixed, \Closure(mixed): mixed): mixed> $interceptors around every handler, the first is the
     *     outermost; each receives the call, the request (a message or an iterable of messages) and the next handler, and
     *     returns the response (a message or an iterable of messages) or throws a StatusException. Use them for authentication and spans
     * @param Limits $limits calls, messages and methods. Change it to the memory and the connections that handlers need
     * @param bool $health serves health checks, `grpc.health.v1`. Disable it where untrusted clients connect
     * @param bool $reflection serves reflection for tools such as grpcurl, which shows all methods and messages. Set it in development, and where
     *     all methods may be known
     * @param bool $channelz serves the connections and their calls by `grpc.channelz.v1`, for tools that inspect a process. Set it where only
     *     operators can connect
     * @param bool $json serves methods with a `google.api.http` rule by HTTP with JSON as well. Set it for browsers and programs without gRPC
     * @param list<string> $webOrigins origins whose pages may call by grpc-web, such as `https://app.example`; `*` allows every origin. Set it for
     *     browsers that use grpc-web
     */
    public function __construct(
        array $interceptors = [],
        public readonly Limits $limits = new Limits(),
        public readonly bool $health = true,
        public readonly bool $reflection = false,
        public readonly bool $channelz = false,
        public readonly bool $json = false,
        public readonly array $webOrigins = [],
    ) {
        $this->interceptors = \array_map(static fn(callable $one): \Closure => $one(...), \array_values($interceptors));
    }
}
