<?php

declare(strict_types=1);

namespace Weft\Grpc\Client;

use Weft\Grpc\CallEnded;
use Weft\Grpc\Internal\Details;
use Weft\Grpc\Status;
use Weft\Grpc\StatusException;
use Weft\Native\GrpcChannel;
use Weft\Native\GrpcClientCall;
use Weft\Protobuf\Codec;
use Weft\Protobuf\DecodingFailed;
use Weft\Runtime\Internal\Scheduler;
use Weft\Runtime\Task;

use function Weft\async;

/**
 * One HTTP/2 connection to a server, shared by any number of calls and tasks. It is made when the first call needs it, and again
 * when it was lost; a call that cannot be made fails with Unavailable.
 *
 * A call that does not end with Ok throws a StatusException. A task that is cancelled cancels its call.
 */
final class Http2Channel implements Channel
{
    private function __construct(private readonly GrpcChannel $native, private readonly ?float $timeout)
    {
    }

    /**
     * @param string $address `host:port` or `[::1]:port`
     * @param float|null $timeout seconds for a call that names none; null is for ever
     * @param float $connectTimeout seconds
     * @param int $messageBytes of a message of the server, compressed or not; more end the call with ResourceExhausted
     *
     * @throws TlsFailed a file cannot be used
     */
    public static function to(string $address, ?Tls $tls = null, ?float $timeout = null, float $connectTimeout = 20.0, int $messageBytes = 4_194_304): self
    {
        if (\preg_match('/^(?:\[([0-9a-fA-F:.]+)\]|([^:\s\/]+)):(\d{1,5})$/', $address, $parts) !== 1) {
            throw new \ValueError("\"$address\" is no address of a server: write host:port or [ipv6]:port");
        }
        $native = GrpcChannel::open($parts[1] . $parts[2], (int) $parts[3], $tls === null ? null : \get_object_vars($tls), $connectTimeout, $messageBytes);

        return new self($native, $timeout);
    }

    public function unary(string $method, object $request, string $response, ?float $timeout, array $metadata): object
    {
        $call = $this->native->call($method, $metadata, $timeout ?? $this->timeout);
        $call->write(Codec::encode($request));
        $call->end();

        return self::only($call, $response);
    }

    public function serverStreaming(string $method, object $request, string $response, ?float $timeout, array $metadata): iterable
    {
        $call = $this->native->call($method, $metadata, $timeout ?? $this->timeout);
        $call->write(Codec::encode($request));
        $call->end();

        return self::messages($call, $response, null);
    }

    public function clientStreaming(string $method, iterable $requests, string $response, ?float $timeout, array $metadata): object
    {
        $call = $this->native->call($method, $metadata, $timeout ?? $this->timeout);
        self::send($call, $requests);

        return self::only($call, $response);
    }

    /** Must be called inside `Weft\run()`: a task of the caller's scope sends the requests. */
    public function bidiStreaming(string $method, iterable $requests, string $response, ?float $timeout, array $metadata): iterable
    {
        $call = $this->native->call($method, $metadata, $timeout ?? $this->timeout);

        return self::messages($call, $response, async(self::send(...), $call, $requests)->named("sender of $method"));
    }

    /** @param iterable<object> $requests */
    private static function send(GrpcClientCall $call, iterable $requests): void
    {
        try {
            foreach ($requests as $request) {
                $room = $call->write(Codec::encode($request));
                if ($room !== 0) {
                    Scheduler::await($room);
                }
            }
        } catch (CallEnded) {
            // Its status says why, to the one who reads.
        }
        $call->end();
    }

    private static function only(GrpcClientCall $call, string $response): object
    {
        try {
            return self::decode($response, Scheduler::await($call->readOnly()));
        } catch (StatusException $status) {
            throw self::withDetails($status, $call);
        }
    }

    /** @return \Generator<int, object> */
    private static function messages(GrpcClientCall $call, string $response, ?Task $sender): \Generator
    {
        try {
            while (($message = Scheduler::await($call->read())) !== null) {
                yield self::decode($response, $message);
            }
        } catch (StatusException $status) {
            throw self::withDetails($status, $call);
        } finally {
            $call->cancel();
            $sender?->cancel('its call has ended');
        }
    }

    private static function decode(string $class, string $message): object
    {
        try {
            return Codec::decode($class, $message);
        } catch (DecodingFailed $error) {
            throw new StatusException(Status::Internal, $error->getMessage(), previous: $error);
        }
    }

    private static function withDetails(StatusException $status, GrpcClientCall $call): StatusException
    {
        $trailers = $call->trailers();
        $details = Details::decode($trailers[Details::NAME][0] ?? '');
        unset($trailers[Details::NAME]);

        return $details === [] && $trailers === []
            ? $status
            : new StatusException($status->status, $status->getMessage(), $details, $trailers, $status);
    }
}
