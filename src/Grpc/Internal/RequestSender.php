<?php

declare(strict_types=1);

namespace Weft\Grpc\Internal;

use Weft\Grpc\CallEndedException;
use Weft\Native\GrpcClientCall;
use Weft\Protobuf\Codec;
use Weft\Runtime\Internal\Scheduler;
use Weft\Runtime\Internal\WaitsFor;
use Weft\Runtime\Task;

use function Weft\async;

/**
 * Sends the requests of a streaming call in a task of the caller's scope, because the call may end while the iterable waits.
 *
 * An exception of the iterable cancels the call and is thrown to the reader of the responses; it does not end the scope.
 *
 * @internal
 */
final class RequestSender
{
    /** The exception of the iterable. */
    public ?\Throwable $failure = null;

    private readonly Task $task;

    /** @param iterable<object> $requests */
    public function __construct(GrpcClientCall $call, iterable $requests, string $method)
    {
        $this->task = async(function () use ($call, $requests): void {
            try {
                self::send($call, $requests);
            } catch (\Throwable $error) {
                // Explicitly, because the stack trace of the exception may keep a reference to the call.
                $call->cancel();
                if (Scheduler::isCancelledBy($error)) {
                    throw $error;
                }
                $this->failure = $error;
            }
        })->named("sender of $method");
    }

    public function cancel(string $reason): void
    {
        $this->task->cancel($reason);
    }

    /** @param iterable<object> $requests */
    #[WaitsFor('room in the stream of a gRPC call')]
    public static function send(GrpcClientCall $call, iterable $requests): void
    {
        try {
            foreach ($requests as $request) {
                $room = $call->write(Codec::encode($request));
                if ($room !== 0) {
                    Scheduler::await($room);
                }
            }
        } catch (CallEndedException) {
            // The reader gets the status of the call.
        }
        $call->end();
    }
}
