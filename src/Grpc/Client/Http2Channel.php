<?php

declare(strict_types=1);

namespace Weft\Grpc\Client;

use Weft\Grpc\Internal\RequestSender;
use Weft\Grpc\Internal\RetryingCall;
use Weft\Grpc\Internal\Details;
use Weft\Grpc\Internal\RetryThrottle;
use Weft\Grpc\Internal\UnstartedCallGuard;
use Weft\Grpc\Status;
use Weft\Grpc\StatusException;
use Weft\Native\GrpcChannel;
use Weft\Native\GrpcClientCall;
use Weft\Protobuf\Codec;
use Weft\Protobuf\DecodingException;
use Weft\Runtime\Internal\Blocking;
use Weft\Runtime\Internal\Scheduler;
use Weft\Runtime\Internal\WaitsFor;
use Weft\Runtime\Trace;

/**
 * HTTP/2 connections to one or several servers of the same service, shared by any number of calls and tasks. A connection is opened when
 * a call needs it and reopened after it was lost. A call without a connection fails with Unavailable.
 *
 * ```
 * $users = new UsersClient(Http2Channel::connect('users:9090', options: new ChannelOptions(timeout: 2.0)));
 * $user = $users->get(new GetUserRequest(7));
 * ```
 *
 * A call continues the current trace (`traceparent` and `tracestate` in its metadata, unless the caller has set them); {@see TracedChannel}
 * gives it a span of its own.
 *
 * A call that does not end with Ok throws a StatusException. Cancelling a task cancels its call. A call that the server has provably not
 * started to handle is retried once; other calls are retried only as the service config says.
 */
final class Http2Channel implements Channel
{
    private readonly ?RetryThrottle $tokens;

    private function __construct(private readonly GrpcChannel $native, private readonly ?float $timeout, private readonly ServiceConfig $config)
    {
        $this->tokens = $config->throttling === null ? null : new RetryThrottle($config->throttling);
    }

    /**
     * @param string|non-empty-list<string> $addresses `host:port` or `[::1]:port`, in order of preference
     *
     * @throws TlsException a file cannot be used
     */
    public static function connect(string|array $addresses, ?Tls $tls = null, ChannelOptions $options = new ChannelOptions()): self
    {
        $native = GrpcChannel::open(
            \array_map(self::server(...), (array) $addresses ?: throw new \ValueError('A channel needs at least one address')),
            $options->config->balancing === Balancing::RoundRobin,
            $tls?->native(),
            $options->native(),
        );

        return new self($native, $options->timeout, $options->config);
    }

    /** @return array{string, int} */
    private static function server(string $address): array
    {
        return \preg_match('/^(?:\[([0-9a-fA-F:.]+)\]|([^:\s\/]+)):(\d{1,5})$/D', $address, $parts) === 1 && $parts[3] > 0 && $parts[3] <= 65_535
            ? [$parts[1] . $parts[2], (int) $parts[3]]
            : throw new \ValueError("\"$address\" is not the address of a server: write host:port or [ipv6]:port, with a port from 1 to 65535");
    }

    public function unary(string $method, object $request, string $response, ?float $timeout, array $metadata): object
    {
        $bytes = Codec::encode($request);
        $attempts = $this->attempts($method, $timeout);
        while (true) {
            $call = $this->ask($method, $metadata, $attempts, $bytes);
            try {
                $reply = self::only($call, $response);
                $attempts->succeeded();

                return $reply;
            } catch (StatusException $failure) {
                $attempts->next($failure, $call);
            }
        }
    }

    public function serverStreaming(string $method, object $request, string $response, ?float $timeout, array $metadata): iterable
    {
        $bytes = Codec::encode($request);
        $attempts = $this->attempts($method, $timeout);

        return $this->stream($this->ask($method, $metadata, $attempts, $bytes), $method, $metadata, $attempts, $bytes, $response);
    }

    /**
     * @template T of object
     *
     * @param array<string, string|list<string>> $metadata
     * @param class-string<T> $response
     *
     * @return \Generator<int, T>
     */
    private function stream(GrpcClientCall $call, string $method, array $metadata, RetryingCall $attempts, string $bytes, string $response): \Generator
    {
        while (true) {
            try {
                yield from self::messages($call, $response, null);
                $attempts->succeeded();

                return;
            } catch (StatusException $failure) {
                $attempts->next($failure, $call);
            }
            $call = $this->ask($method, $metadata, $attempts, $bytes);
        }
    }

    /**
     * Inside `Weft\run()` a task of the caller's scope sends the requests, and is cancelled when the call ends. Outside of it a call whose
     * deadline passes while the iterable computes ends when the next request comes.
     */
    public function clientStreaming(string $method, iterable $requests, string $response, ?float $timeout, array $metadata): object
    {
        $attempts = $this->attempts($method, $timeout);
        $call = $this->open($method, $metadata, $attempts);
        if (Scheduler::$current?->running === null) {
            try {
                RequestSender::send($call, self::untilDeadline($requests, $attempts));

                return self::only($call, $response);
            } finally {
                self::cancel($call);
            }
        }
        $sender = new RequestSender($call, $requests, $method);
        try {
            return self::only($call, $response);
        } catch (StatusException $status) {
            throw $sender->failure ?? $status;
        } finally {
            self::cancel($call);
            $sender->cancel('its call has ended');
        }
    }

    /**
     * Outside of a loop nothing else notices that the deadline has passed while the iterable computes.
     *
     * @param iterable<object> $requests
     *
     * @return \Generator<int, object>
     *
     * @throws StatusException
     */
    private static function untilDeadline(iterable $requests, RetryingCall $attempts): \Generator
    {
        foreach ($requests as $request) {
            if ($attempts->timeLeft() === 0.0) {
                throw new StatusException(Status::DeadlineExceeded, 'the deadline has passed');
            }
            yield $request;
        }
    }

    /**
     * Must be called inside `Weft\run()`: a task of the caller's scope sends the requests. An exception of the iterable cancels the call
     * and is thrown to the reader of the responses.
     */
    public function bidiStreaming(string $method, iterable $requests, string $response, ?float $timeout, array $metadata): iterable
    {
        $call = $this->open($method, $metadata, $this->attempts($method, $timeout));
        $sender = new RequestSender($call, $requests, $method);

        return self::messages($call, $response, $sender, new UnstartedCallGuard($call, $sender));
    }

    private function attempts(string $method, ?float $timeout): RetryingCall
    {
        if ($timeout !== null && \is_nan($timeout)) {
            throw new \ValueError('The timeout of ' . \substr($method, 1) . ' must be a number of seconds, got NAN');
        }
        $config = $this->config->method($method);
        $limits = \array_filter([$timeout ?? $this->timeout, $config->timeout], \is_float(...));

        return new RetryingCall($config, $this->tokens, $limits === [] ? null : \min($limits));
    }

    /** @param array<string, string|list<string>> $metadata */
    private function open(string $method, array $metadata, RetryingCall $attempts): GrpcClientCall
    {
        if (!isset($metadata['traceparent'])) {
            $metadata += Trace::current()?->headers() ?? [];
        }

        return $this->native->call($method, $metadata, $attempts->timeLeft(), $attempts->made, $attempts->config->waitForReady);
    }

    /** @param array<string, string|list<string>> $metadata */
    private function ask(string $method, array $metadata, RetryingCall $attempts, string $request): GrpcClientCall
    {
        $call = $this->open($method, $metadata, $attempts);
        $call->write($request);
        $call->end();

        return $call;
    }

    /**
     * @template T of object
     *
     * @param class-string<T> $response
     *
     * @return T
     */
    #[WaitsFor('the response of a gRPC call')]
    private static function only(GrpcClientCall $call, string $response): object
    {
        try {
            return self::decode($response, Scheduler::await($call->readOnly()), $call->messageMemory());
        } catch (StatusException $status) {
            throw self::withDetails($status, $call);
        }
    }

    /**
     * @template T of object
     *
     * @param class-string<T> $response
     *
     * @return \Generator<int, T>
     */
    #[WaitsFor('the next message of a gRPC server')]
    private static function messages(GrpcClientCall $call, string $response, ?RequestSender $sender = null, ?UnstartedCallGuard $guard = null): \Generator
    {
        try {
            while (($message = Scheduler::await($call->read())) !== null) {
                yield self::decode($response, $message, $call->messageMemory());
            }
        } catch (StatusException $status) {
            throw $sender->failure ?? self::withDetails($status, $call);
        } finally {
            self::cancel($call);
            $sender?->cancel('its call has ended');
        }
    }

    private static function cancel(GrpcClientCall $call): void
    {
        $call->cancel();
        if (Scheduler::$current === null) {
            // Outside of a loop nothing else would send the cancellation before the next call.
            Blocking::flush();
        }
    }

    /**
     * @template T of object
     *
     * @param class-string<T> $class
     *
     * @return T
     */
    private static function decode(string $class, string $message, int $memory): object
    {
        try {
            return Codec::decode($class, $message, $memory);
        } catch (DecodingException $error) {
            throw new StatusException($error->isTooLarge ? Status::ResourceExhausted : Status::Internal, $error->getMessage(), previous: $error);
        }
    }

    private static function withDetails(StatusException $status, GrpcClientCall $call): StatusException
    {
        $trailers = $call->trailers();
        $details = Details::decode($trailers[Details::NAME][0] ?? '');
        unset($trailers[Details::NAME]);

        $full = $details === [] && $trailers === []
            ? $status
            : new StatusException($status->status, $status->getMessage(), $details, $trailers, $status);

        return $full->markReceived();
    }
}
