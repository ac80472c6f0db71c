<?php

declare(strict_types=1);

namespace Weft\Grpc\Client;

use Weft\Grpc\Status;
use Weft\Grpc\StatusException;
use Weft\Runtime\Trace;

/**
 * Gives each call a span of its own, below the current one, and reports it when it has ended. Without it, a call continues the current
 * span. A stream is reported when its reader has ended, and not at all if it was never read.
 *
 * ```php
 * $channel = new TracedChannel(Http2Channel::connect('users:9090'), static fn(CallSpan $span) => $exporter->export($span));
 * ```
 */
final class TracedChannel implements Channel
{
    /** @param \Closure(CallSpan): void $report called in the task of the call; its exceptions are the call's */
    public function __construct(private readonly Channel $channel, private readonly \Closure $report)
    {
    }

    public function unary(string $method, object $request, string $response, ?float $timeout, array $metadata): object
    {
        return $this->call($method, fn(): object => $this->channel->unary($method, $request, $response, $timeout, $metadata));
    }

    public function serverStreaming(string $method, object $request, string $response, ?float $timeout, array $metadata): iterable
    {
        return $this->stream($method, fn(): iterable => $this->channel->serverStreaming($method, $request, $response, $timeout, $metadata));
    }

    public function clientStreaming(string $method, iterable $requests, string $response, ?float $timeout, array $metadata): object
    {
        return $this->call($method, fn(): object => $this->channel->clientStreaming($method, $requests, $response, $timeout, $metadata));
    }

    public function bidiStreaming(string $method, iterable $requests, string $response, ?float $timeout, array $metadata): iterable
    {
        return $this->stream($method, fn(): iterable => $this->channel->bidiStreaming($method, $requests, $response, $timeout, $metadata));
    }

    /**
     * @template T of object
     *
     * @param \Closure(): T $call
     *
     * @return T
     */
    private function call(string $method, \Closure $call): object
    {
        $end = $this->begin($method, $trace);
        $status = null;
        try {
            $reply = $trace->run($call);
            $status = Status::Ok;

            return $reply;
        } catch (StatusException $failure) {
            $status = $failure->status;
            throw $failure;
        } finally {
            $end($status);
        }
    }

    /**
     * No generator itself: the call begins now, not with the first read.
     *
     * @template T of object
     *
     * @param \Closure(): iterable<T> $call
     *
     * @return \Generator<int, T>
     */
    private function stream(string $method, \Closure $call): \Generator
    {
        $end = $this->begin($method, $trace);
        try {
            $messages = $trace->run($call);
        } catch (\Throwable $failure) {
            $end($failure instanceof StatusException ? $failure->status : null);
            throw $failure;
        }

        return self::messages($messages, $end);
    }

    /**
     * @template T of object
     *
     * @param iterable<T> $messages
     * @param \Closure(?Status): void $end
     *
     * @return \Generator<int, T>
     */
    private static function messages(iterable $messages, \Closure $end): \Generator
    {
        $status = null;
        try {
            foreach ($messages as $message) {
                yield $message;
            }
            $status = Status::Ok;
        } catch (StatusException $failure) {
            $status = $failure->status;
            throw $failure;
        } finally {
            $end($status);
        }
    }

    /**
     * @param-out Trace $trace the span of the call
     *
     * @return \Closure(?Status): void ends the span
     */
    private function begin(string $method, ?Trace &$trace): \Closure
    {
        $parent = Trace::current();
        $span = $trace = $parent?->child() ?? Trace::continue(null);
        [$start, $clock] = [\microtime(true), \hrtime(true)];

        return fn(?Status $status) => ($this->report)(new CallSpan($span, $parent, $method, $start, (\hrtime(true) - $clock) / 1e9, $status));
    }
}
