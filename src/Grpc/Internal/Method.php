<?php

declare(strict_types=1);

namespace Weft\Grpc\Internal;

use Weft\Grpc\Call;
use Weft\Grpc\Internal\Json\Binding;
use Weft\Protobuf\Codec;
use Weft\Protobuf\Message;
use Weft\Protobuf\ProtobufException;

/**
 * A method of a service, ready to be called.
 *
 * @internal
 */
final class Method
{
    /** Its messages implement `Weft\Protobuf\Message`, so that the extension encodes and decodes them. */
    public readonly bool $coded;
    /** One such message in, one out, by gRPC: the frequent kind of call, which {@see Calls} handles with the fewest steps. */
    public readonly bool $isPlain;

    /**
     * @param string $path `/package.Service/Method`
     * @param \Closure(mixed, Call): mixed $handler with the interceptors around it; takes and returns messages, or iterables of them
     * @param class-string $request
     * @param class-string $response
     * @param Binding|null $binding of a call by HTTP with JSON
     */
    public function __construct(
        public readonly string $path,
        public readonly \Closure $handler,
        public readonly string $request,
        public readonly string $response,
        public readonly bool $clientStreams,
        public readonly bool $serverStreams,
        public readonly ?Binding $binding = null,
    ) {
        $this->coded = \is_subclass_of($request, Message::class) && \is_subclass_of($response, Message::class);
        $this->isPlain = $this->coded && !$clientStreams && !$serverStreams && $binding === null;
    }

    /** @param list<\Closure(Call, mixed, \Closure): mixed> $interceptors the first is the outermost */
    public function intercepted(array $interceptors): self
    {
        $handler = $this->handler;
        foreach (\array_reverse($interceptors) as $one) {
            $next = $handler;
            $handler = static fn(mixed $request, Call $call): mixed => $one($call, $request, static fn(mixed $request): mixed => $next($request, $call));
        }

        return new self($this->path, $handler, $this->request, $this->response, $this->clientStreams, $this->serverStreams, $this->binding);
    }

    /** Loads the message classes and their descriptors, which a process without free file descriptors cannot do later. */
    public function loadMessages(): void
    {
        foreach ([$this->request, $this->response] as $class) {
            try {
                Codec::decode($class, '');
            } catch (ProtobufException) {
                // The calls that use a mismatched class report it.
            }
        }
    }

    public function boundTo(Binding $binding): self
    {
        return new self($this->path, $this->handler, $this->request, $this->response, $this->clientStreams, $this->serverStreams, $binding);
    }
}
