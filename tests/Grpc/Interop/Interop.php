<?php

declare(strict_types=1);

namespace Weft\Tests\Grpc\Interop;

use Weft\Grpc\Call;
use Weft\Grpc\Status;
use Weft\Grpc\StatusException;
use Weft\Protobuf\Codec;
use Weft\Tests\Grpc\Interop\Generated\BoolValue;
use Weft\Tests\Grpc\Interop\Generated\EchoStatus;
use Weft\Tests\Grpc\Interop\Generated\OrcaLoadReport;
use Weft\Tests\Grpc\Interop\Generated\Payload;
use Weft\Tests\Grpc\Interop\Generated\PBEmpty;
use Weft\Tests\Grpc\Interop\Generated\SimpleRequest;
use Weft\Tests\Grpc\Interop\Generated\SimpleResponse;
use Weft\Tests\Grpc\Interop\Generated\StreamingInputCallResponse;
use Weft\Tests\Grpc\Interop\Generated\StreamingOutputCallRequest;
use Weft\Tests\Grpc\Interop\Generated\StreamingOutputCallResponse;
use Weft\Tests\Grpc\Interop\Generated\TestOrcaReport;
use Weft\Tests\Grpc\Interop\Generated\TestService;

use function Weft\delay;

/** The service that gRPC implementations test each other with, as doc/interop-test-descriptions.md of grpc/grpc says. */
final class Interop implements TestService
{
    public function __construct(private readonly Load $load)
    {
    }

    public function emptyCall(PBEmpty $request, Call $call): PBEmpty
    {
        self::echoMetadata($call);

        return new PBEmpty();
    }

    public function unaryCall(SimpleRequest $request, Call $call): SimpleResponse
    {
        self::expect($request->expectCompressed, $call);
        $call->compress($request->responseCompressed?->value === true);
        self::echoMetadata($call);
        self::echoStatus($request->responseStatus);
        if ($request->orcaPerQueryReport !== null) {
            $call->trailer('endpoint-load-metrics-bin', Codec::encode(self::report($request->orcaPerQueryReport)));
        }

        return new SimpleResponse(payload: self::payload($request->responseSize));
    }

    public function streamingOutputCall(StreamingOutputCallRequest $request, Call $call): iterable
    {
        yield from self::responses($request, $call);
    }

    public function streamingInputCall(iterable $requests, Call $call): StreamingInputCallResponse
    {
        $size = 0;
        foreach ($requests as $request) {
            self::expect($request->expectCompressed, $call);
            $size += \strlen($request->payload?->body ?? '');
        }

        return new StreamingInputCallResponse($size);
    }

    public function fullDuplexCall(iterable $requests, Call $call): iterable
    {
        self::echoMetadata($call);
        foreach ($requests as $request) {
            self::echoStatus($request->responseStatus);
            if ($request->orcaOobReport !== null) {
                $this->load->report = self::report($request->orcaOobReport);
            }
            yield from self::responses($request, $call);
        }
    }

    private static function expect(?BoolValue $compressed, Call $call): void
    {
        if ($compressed !== null && $compressed->value !== $call->wasCompressed()) {
            throw new StatusException(Status::InvalidArgument, 'the message was ' . ($call->wasCompressed() ? 'compressed' : 'not compressed'));
        }
    }

    private static function echoMetadata(Call $call): void
    {
        $initial = $call->value('x-grpc-test-echo-initial');
        if ($initial !== null) {
            $call->begin(['x-grpc-test-echo-initial' => $initial]);
        }
        $trailing = $call->value('x-grpc-test-echo-trailing-bin');
        if ($trailing !== null) {
            $call->trailer('x-grpc-test-echo-trailing-bin', $trailing);
        }
    }

    private static function echoStatus(?EchoStatus $status): void
    {
        if ($status !== null && $status->code !== 0) {
            throw new StatusException(Status::from($status->code), $status->message);
        }
    }

    /** @return \Generator<int, StreamingOutputCallResponse> */
    private static function responses(StreamingOutputCallRequest $request, Call $call): \Generator
    {
        foreach ($request->responseParameters as $wanted) {
            if ($wanted->intervalUs > 0) {
                delay($wanted->intervalUs / 1e6);
            }
            $call->compress($wanted->compressed?->value === true);
            yield new StreamingOutputCallResponse(payload: self::payload($wanted->size));
        }
    }

    private static function payload(int $size): Payload
    {
        return new Payload(body: \str_repeat("\0", $size));
    }

    private static function report(TestOrcaReport $report): OrcaLoadReport
    {
        return new OrcaLoadReport($report->cpuUtilization, $report->memoryUtilization, $report->requestCost, $report->utilization);
    }
}
