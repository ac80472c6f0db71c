<?php

declare(strict_types=1);

namespace Weft\Grpc\Internal;

use Psr\Log\LoggerInterface;
use Weft\Grpc\Call;
use Weft\Grpc\CallEndedException;
use Weft\Grpc\Internal\Json\Binding;
use Weft\Grpc\Status;
use Weft\Grpc\StatusException;
use Weft\Log\Internal\ExceptionReport;
use Weft\Native;
use Weft\Native\GrpcServer;
use Weft\Protobuf\Codec;
use Weft\Protobuf\DecodingException;
use Weft\Protobuf\EncodingException;
use Weft\Runtime\CancelledException;
use Weft\Runtime\Internal\ServerTaskHandler;
use Weft\Runtime\Internal\ServerTasks;
use Weft\Runtime\Internal\Cancellation;
use Weft\Runtime\Internal\Coroutine;
use Weft\Runtime\Internal\Scheduler;
use Weft\Runtime\Internal\WaitsFor;

/**
 * The calls of a server.
 *
 * @implements ServerTaskHandler<Call>
 *
 * @internal
 */
final class Calls implements ServerTaskHandler
{
    /** With which classes it serves, see {@see ServerTasks::preload()}. */
    public const DIRECTORIES = ['Grpc', 'Grpc/Health', 'Grpc/Internal', 'Grpc/Internal/Json', 'Grpc/Rpc', 'Http', 'Http/Internal', 'Protobuf', 'Protobuf/Internal'];

    private readonly ServerTasks $serverTasks;
    /** The operation that ends with refusals to log. */
    private ?int $refusals = null;

    /** @param list<Method> $methods */
    public function __construct(
        private readonly GrpcServer $native,
        private readonly array $methods,
        private readonly LoggerInterface $logger,
        private readonly bool $debug,
    ) {
        $this->serverTasks = new ServerTasks($this, $native, $logger);
    }

    public function serve(Scheduler $scheduler): void
    {
        $claim = $scheduler->fiberShares->claim($this->native->handlers(), $this->native->fit(...));
        $this->logRefusals($scheduler);
        try {
            $this->serverTasks->serve($scheduler, static fn() => null);
        } finally {
            $this->refusals === null || $scheduler->unwatch($this->refusals);
            $scheduler->fiberShares->release($claim);
        }
    }

    /** Logs refused calls: the first of a reason at once, then those of ten seconds together. */
    private function logRefusals(Scheduler $scheduler): void
    {
        $this->refusals = $this->native->refusals();
        $scheduler->watch($this->refusals, function (int $op) use ($scheduler): void {
            /** @var list<array{string, int, ?string, string}> $refusals */
            $refusals = Native\take($op);
            foreach ($refusals as [$reason, $count, $peer, $message]) {
                $this->logger->warning('gRPC calls refused ({reason}): {count}, the last from {peer}: {message}', [
                    'reason' => $reason,
                    'count' => $count,
                    'peer' => $peer ?? 'a Unix socket',
                    'message' => $message,
                ]);
            }
            $this->logRefusals($scheduler);
        });
    }

    public function interrupt(Coroutine $task, int $event): void
    {
        $task->end(new Cancellation($event === ServerTasks::CLIENT_DISCONNECTED ? 'the client has cancelled the call' : 'the call is past its deadline'));
    }

    public function handle(object $call, int $id): void
    {
        $method = $this->methods[$call->index()];
        $task = $this->serverTasks->tasks[$id];
        $reply = $error = null;
        try {
            try {
                $request = $method->isPlain ? $call->request($method->request) : self::request($call, $method, $task);
            } catch (DecodingException $undecodable) {
                throw self::undecodable($undecodable);
            }
            $reply = ($method->handler)($request, $call);
            if ($method->serverStreams) {
                $this->send($call, $method, $reply);
            } elseif (!$reply instanceof $method->response) {
                throw self::wrong($method, $reply);
            }
        } catch (\Throwable $error) {
        }
        if ($task->children !== null) {
            $error = $task->children->close($error);
        }
        try {
            if ($error !== null) {
                $this->fail($call, $method, $error, $task);
            } elseif ($method->isPlain) {
                $call->answer($reply, $call->trailers);

                return;
            } elseif ($method->serverStreams) {
                $call->finish(0, '', $call->trailers);
            } elseif ($method->binding !== null) {
                $call->reply($method->binding->response($reply), $call->trailers);
            } elseif ($method->coded) {
                $call->answer($reply, $call->trailers);

                return;
            } else {
                $call->reply(Codec::encode($reply), $call->trailers);
            }
        } catch (\Throwable $error) {
            // The message or the metadata cannot be encoded.
            $this->report($error, $call, Status::Internal);
            $call->finish(Status::Internal->value, $this->debug ? $error->getMessage() : 'the handler failed', []);
        }
        $call->handled();
    }

    /**
     * @template T of object
     *
     * @param class-string<T> $class
     *
     * @return \Generator<int, T>
     */
    #[WaitsFor('the next message of a gRPC client')]
    private static function messages(Call $call, string $class, Coroutine $task): \Generator
    {
        while (true) {
            try {
                $message = $call->read();
                if (\is_int($message)) {
                    $message = Scheduler::await($message);
                }
            } catch (StatusException $status) {
                throw $call->isOpen() ? $status : self::cancellation($task, $status);
            }
            if ($message === null) {
                return;
            }
            yield self::decode($class, $message, $call->messageMemory());
        }
    }

    /** The read of a call that has ended fails before its interruption arrives: the handler is cancelled by the first of them, and once. */
    private static function cancellation(Coroutine $task, StatusException $status): \Throwable
    {
        $task->end(new Cancellation($status->getMessage()));
        $reader = Scheduler::$current?->running;

        return $reader === null || $reader->interrupt === null ? $status : $reader->interruption();
    }

    private static function request(Call $call, Method $method, Coroutine $task): object
    {
        return match (true) {
            $method->clientStreams => self::messages($call, $method->request, $task),
            $method->binding !== null => $method->binding->request($call),
            $method->coded => $call->request($method->request),
            default => Codec::decode($method->request, $call->message(), $call->messageMemory()),
        };
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
            throw self::undecodable($error);
        }
    }

    private static function undecodable(DecodingException $error): StatusException
    {
        return new StatusException($error->isTooLarge ? Status::ResourceExhausted : Status::Internal, $error->getMessage(), previous: $error);
    }

    #[WaitsFor('room in the stream of a gRPC call')]
    private function send(Call $call, Method $method, mixed $replies): void
    {
        if (!\is_iterable($replies)) {
            throw new \TypeError("The handler of $method->path returned " . \get_debug_type($replies) . " instead of an iterable of $method->response");
        }
        $class = $method->response;
        foreach ($replies as $reply) {
            if (!$reply instanceof $class) {
                throw self::wrong($method, $reply);
            }
            $room = $method->binding !== null ? $call->write($method->binding->line($reply)) : ($method->coded ? $call->send($reply) : $call->write(Codec::encode($reply)));
            if ($room !== 0) {
                Scheduler::await($room);
            }
        }
    }

    private static function wrong(Method $method, mixed $reply): \TypeError
    {
        return new \TypeError("The handler of $method->path answered with " . \get_debug_type($reply) . " instead of $method->response");
    }

    private function fail(Call $call, Method $method, \Throwable $error, Coroutine $task): void
    {
        if ($error instanceof StatusException && $error->isReceived()) {
            // Details and metadata of another server are for its client, which is this process.
            $this->report($error, $call, $error->status);
            $call->finish($error->status->value, $error->getMessage(), $call->trailers);

            return;
        }
        if ($error instanceof StatusException) {
            $details = $method->binding === null ? null : Binding::details($error);
            $call->finish($error->status->value, $error->getMessage(), $error->trailers() + $call->trailers, $details);

            return;
        }
        if ($error instanceof CallEndedException && !$call->isOpen()) {
            return;
        }
        if ($error instanceof CancelledException && $task->cancelled) {
            $call->finish(Status::Unavailable->value, 'the server is stopping', $call->trailers);

            return;
        }
        $status = $error instanceof \TypeError || $error instanceof EncodingException ? Status::Internal : Status::Unknown;
        $this->report($error, $call, $status);
        $call->finish($status->value, $this->debug ? $error::class . ": {$error->getMessage()}" : 'the handler failed', $call->trailers);
    }

    private function report(\Throwable $error, Call $call, Status $status): void
    {
        $this->logger->error('{method} failed: {error}', [
            'method' => $call->method(),
            'error' => ExceptionReport::summary($error),
            'exception' => $error,
            'trace_id' => $call->trace()->traceId(),
            'span_id' => $call->trace()->spanId(),
            'rpc.grpc.status_code' => $status->value,
        ] + $call->telemetry());
    }

    public function abandon(object $call): void
    {
        $call->handled();
        $call->finish(Status::Unavailable->value, 'the server is stopping', []);
    }

    public function failResponse(object $call, ?string $cause): void
    {
        $cause === null ? $this->abandon($call) : $call->finish(Status::Unknown->value, 'the handler failed', []);
    }

    public function directories(): array
    {
        return self::DIRECTORIES;
    }

    /** Its connections are those of HTTP servers. */
    public function refuseMore(): void
    {
    }

    public function connections(): int
    {
        return 0;
    }

    /** `/api.Users/Get from 127.0.0.1:40000` */
    public function describe(object $call): string
    {
        return $call->method() . ' from ' . ($call->peer() ?? 'a Unix socket');
    }

    public function cancelAfterGrace(float $grace): void
    {
        $this->serverTasks->cancelAfterGrace($grace);
    }

    /** `serve()` returns once the last task has ended. */
    public function end(): void
    {
        $this->serverTasks->end();
    }
}
