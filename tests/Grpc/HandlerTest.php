<?php

declare(strict_types=1);

namespace Weft\Tests\Grpc;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Grpc\MessageLimits;
use Weft\Grpc\Rpc\Status as RpcStatus;
use Weft\Grpc\Status;
use Weft\Grpc\StatusException;
use Weft\Protobuf\Codec;
use Weft\Tests\Timing;

/** What becomes of what a handler does. */
final class HandlerTest extends GrpcTestCase
{
    public function testAStatusExceptionIsTheStatusWithItsUnicodeMessageAndDetails(): void
    {
        $server = $this->serve('"get" => static fn() => throw new StatusException(Status::NotFound, "no 100% \u{1F608}\n", [new User(7)], ["x-more" => "a"])');

        $answer = $server->post(self::GET, self::USER_228);

        self::assertStatus(Status::NotFound, $answer, "no 100% \u{1F608}\n");
        self::assertSame('a', $answer->field('x-more'));
        $details = Codec::decode(RpcStatus::class, (string) base64_decode((string) $answer->field('grpc-status-details-bin')));
        self::assertSame([5, "no 100% \u{1F608}\n"], [$details->code, $details->message]);
        self::assertSame(['type.googleapis.com/api.User', "\x08\x07"], [$details->details[0]->typeUrl, $details->details[0]->value]);
        self::assertSame('', $server->log());
    }

    public function testTheStatusOfACallThatAHandlerMakesIsLoggedAndItsDetailsAndMetadataStay(): void
    {
        $inner = $this->serve('"get" => static fn() => throw new StatusException(Status::NotFound, "no such user", [new User(7)], ["x-inner" => "a"]), "list" => static function () { yield new User(1); throw new StatusException(Status::Aborted, "torn", [], ["x-inner" => "a"]); }');
        $client = "static fn() => new Weft\\Examples\\Users\\UsersClient(Weft\\Grpc\\Client\\Http2Channel::connect('$inner->address'))";
        $outer = $this->serve('"get" => static function ($request, $call) { $call->trailer("x-outer", "b"); return (' . $client . ')()->get($request); }, "list" => static fn($request) => (' . $client . ')()->list($request)');

        $answer = $outer->post(self::GET, self::USER_228);
        self::assertStatus(Status::NotFound, $answer, 'no such user');
        self::assertSame(['b', null, null], [$answer->field('x-outer'), $answer->field('x-inner'), $answer->field('grpc-status-details-bin')]);
        self::assertTrue($outer->awaitLog('/api.Users/Get failed'));
        $stream = $outer->post(self::LIST, self::EMPTY_MESSAGE);
        self::assertStatus(Status::Aborted, $stream, 'torn');
        self::assertNull($stream->field('x-inner'));
        self::assertTrue($outer->awaitLog('/api.Users/List failed'));
        self::assertSame('', $inner->log());
    }

    public function testAHandlerMayPassOnTheStatusOfItsCall(): void
    {
        $inner = $this->serve('"get" => static fn() => throw new StatusException(Status::NotFound, "no such user", [new User(7)], ["x-inner" => "a"])');
        $outer = $this->serve('"get" => static function ($request) { try { return (new Weft\Examples\Users\UsersClient(Weft\Grpc\Client\Http2Channel::connect("' . $inner->address . '")))->get($request); } catch (StatusException $failure) { throw new StatusException($failure->status, $failure->getMessage(), $failure->details, $failure->metadata, $failure); } }');

        $answer = $outer->post(self::GET, self::USER_228);

        self::assertStatus(Status::NotFound, $answer, 'no such user');
        self::assertSame('a', $answer->field('x-inner'));
        self::assertNotNull($answer->field('grpc-status-details-bin'));
        self::assertSame('', $outer->log());
    }

    /** @dataProvider codes */
    #[DataProvider('codes')]
    public function testEveryStatusReachesTheClient(Status $status): void
    {
        $server = $this->serve("'get' => static fn() => throw new StatusException(Status::from($status->value), 'why')");

        self::assertStatus($status, $server->post(self::GET, self::USER_228), 'why');
    }

    /** @return iterable<string, array{Status}> */
    public static function codes(): iterable
    {
        foreach (\array_slice(Status::cases(), 1) as $status) {
            yield $status->name => [$status];
        }
    }

    public function testAMessageThatIsNoUtf8KeepsItsStatusAndItsDetails(): void
    {
        $server = $this->serve('"get" => static fn() => throw new StatusException(Status::NotFound, "no \\xfcser", [new User(7)])');

        $answer = $server->post(self::GET, self::USER_228);

        self::assertStatus(Status::NotFound, $answer, "no \u{FFFD}ser");
        $details = Codec::decode(RpcStatus::class, (string) base64_decode((string) $answer->field('grpc-status-details-bin')));
        self::assertSame("no \u{FFFD}ser", $details->message);
        self::assertSame('', $server->log());
    }

    public function testInDevelopmentAMessageThatIsNoUtf8IsShownToo(): void
    {
        $server = $this->serve('"get" => static fn() => throw new LogicException("\\xfc")', app: 'debug: true');

        self::assertStatus(Status::Unknown, $server->post(self::GET, self::USER_228), "LogicException: \u{FFFD}");
    }

    public function testOkIsNothingToThrow(): void
    {
        $server = $this->serve('"get" => static fn() => throw new StatusException(Status::Ok, "fine")');

        self::assertStatus(Status::Unknown, $server->post(self::GET, self::USER_228), 'the handler failed');
        self::assertTrue($server->awaitLog('ValueError: Ok is not a failure: return a response instead of throwing "fine"'));
    }

    public function testADetailThatIsNoMessageIsNamedWhereTheStatusIsMade(): void
    {
        $this->expectException(\TypeError::class);
        $this->expectExceptionMessage('A detail of a status must be a Weft\Protobuf\Message, got stdClass');

        new StatusException(Status::NotFound, details: [new \stdClass()]);
    }

    public function testAnythingElseThrownIsUnknownWithALogLineAndNothingOfItForTheClient(): void
    {
        $server = $this->serve('"get" => static fn() => throw new LogicException("secret")');

        self::assertStatus(Status::Unknown, $server->post(self::GET, self::USER_228), 'the handler failed');
        self::assertTrue($server->awaitLog('/api.Users/Get failed: LogicException: secret at '));
        self::assertStatus(Status::Ok, $server->post(self::LIST, self::EMPTY_MESSAGE));
    }

    public function testAFailureIsLoggedWithATraceWhateverTheClientSendsAsOne(): void
    {
        $server = $this->serve('"get" => static fn() => throw new LogicException("secret")', app: 'new Weft\Log\StreamLogger(format: Weft\Log\Format::Json)');

        self::assertStatus(Status::Unknown, $server->post(self::GET, self::USER_228, '-H', "traceparent: \xff"), 'the handler failed');
        self::assertTrue($server->awaitLog('/api.Users/Get failed: LogicException: secret at '));
        self::assertMatchesRegularExpression('/"trace_id":"[0-9a-f]{32}"/', $server->log());
    }

    public function testALoggerThatThrowsChangesNoAnswerAndDoesNotEndTheServer(): void
    {
        $server = $this->serve(
            '"get" => static fn() => throw new LogicException("secret"), "list" => static function () { echo "loud"; return []; }',
            app: 'new class extends Psr\Log\AbstractLogger { public function log($level, $message, array $context = []): void { throw new RuntimeException("the disk is full"); } }',
        );

        self::assertStatus(Status::Unknown, $server->post(self::GET, self::USER_228), 'the handler failed');
        self::assertStatus(Status::Unimplemented, $server->post('/api.Users/Nothing', self::USER_228), 'there is no method /api.Users/Nothing');
        self::assertStatus(Status::Ok, $server->post(self::LIST, self::EMPTY_MESSAGE));
        foreach (['the disk is full; the record was: /api.Users/Get failed: LogicException: secret', 'gRPC calls refused (unknown_method): 1', 'Discarded output printed by /api.Users/List'] as $record) {
            self::assertTrue($server->awaitLog($record), $server->log());
        }
    }

    public function testExitIsUnknownNamesTheCallAndLetsOtherCallsFinish(): void
    {
        $server = $this->serve(
            '"list" => static function () { say("working"); gate("list"); return [new User(7)]; }, "get" => static fn() => exit(3)',
        );
        $slow = new Wire($server->connect());
        $slow->send(Wire::call(1, self::LIST) . Wire::frame(Wire::DATA, Wire::END_STREAM, 1, self::EMPTY_MESSAGE));
        self::assertTrue($server->awaitLog('working'));

        self::assertStatus(Status::Unknown, $server->post(self::GET, self::USER_228), 'the handler failed');

        self::assertTrue($server->awaitLog('called exit()'));
        $server->open('list');
        self::assertSame("\0\0\0\0\x02\x08\x07", $slow->await(Wire::DATA)[2] ?? null);
        self::assertTrue($slow->isClosed(), 'a connection without calls is told that there will be none');
        self::assertMatchesRegularExpression('~critical /api\.Users/Get from 127\.0\.0\.1:\d+ called exit\(\): the process ends, 1 other requests are finished first~', $server->log());
        self::assertSame([3, ''], $server->end());
    }

    public function testMemoryThatRunsOutIsUnknownForTheOneAndUnavailableForTheOthersAndForRequests(): void
    {
        $server = $this->serve(
            '"list" => static function () { say("working"); delay(600); return []; },
             "get" => static function () { $eaten = []; while (true) { $eaten[] = str_repeat("x", 100_000); } }',
            more: 'ini_set("memory_limit", "32M"); $app->http("127.0.0.1:0")->get("/slow", static function () { say("waiting"); delay(600); return Response::text(""); });',
        );
        $request = $server->connect();
        fwrite($request, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
        self::assertTrue($server->awaitLog('waiting'));
        $slow = new Wire($server->connect());
        $slow->send(Wire::call(1, self::LIST) . Wire::frame(Wire::DATA, Wire::END_STREAM, 1, self::EMPTY_MESSAGE));
        self::assertTrue($server->awaitLog('working'));

        self::assertStatus(Status::Unknown, $server->post(self::GET, self::USER_228), 'the handler failed');

        self::assertStringStartsWith('HTTP/1.1 503 ', (string) stream_get_contents($request));
        self::assertNotNull($slow->await(Wire::HEADERS), 'the call was not answered');
        self::assertTrue($server->awaitLog('the process ends, 2 other requests are answered 503'));
    }

    public function testInDevelopmentTheClientIsToldMore(): void
    {
        $server = $this->serve('"get" => static fn() => throw new LogicException("reason")', app: 'debug: true');

        self::assertStatus(Status::Unknown, $server->post(self::GET, self::USER_228), 'LogicException: reason');
    }

    public function testAFailureInTheMiddleOfAStreamComesAfterItsMessages(): void
    {
        $server = $this->serve('"list" => static function () { yield new User(1); throw new StatusException(Status::DataLoss, "gone"); }');

        $answer = $server->post(self::LIST, self::EMPTY_MESSAGE);

        self::assertSame(["\x08\x01"], $answer->messages());
        self::assertStatus(Status::DataLoss, $answer, 'gone');
    }

    public function testAWrongMessageIsInternalWithALogLine(): void
    {
        $server = $this->serve('"list" => static function () { yield new ImportSummary(); }');

        self::assertStatus(Status::Internal, $server->post(self::LIST, self::EMPTY_MESSAGE), 'the handler failed');
        self::assertTrue($server->awaitLog('/api.Users/List failed: TypeError: The handler of /api.Users/List answered with Weft\Examples\Users\ImportSummary instead of Weft\Examples\Users\User'));
    }

    public function testMetadataThatCannotTravelIsInternalWithALogLine(): void
    {
        $server = $this->serve('"get" => static function ($request, Call $call) { $call->trailer("Upper", "a"); return new User(); }');

        self::assertSame(Status::Internal->value, $server->post(self::GET, self::USER_228)->status());
        self::assertTrue($server->awaitLog('"Upper" is not a name of metadata'));
    }

    public function testALongMessageOfAStatusIsCut(): void
    {
        $server = $this->serve('"get" => static fn() => throw new StatusException(Status::NotFound, str_repeat("\u{e4}", 300_000), [new User(7)])');

        $answer = $server->post(self::GET, self::USER_228);

        self::assertSame(Status::NotFound->value, $answer->status());
        $note = ' [cut, the message has 600000 bytes]';
        self::assertMatchesRegularExpression('/^(\xc3\xa4){300,}\Q' . $note . '\E$/D', rawurldecode((string) $answer->field('grpc-message')));
        $details = Codec::decode(RpcStatus::class, (string) base64_decode((string) $answer->field('grpc-status-details-bin')));
        self::assertMatchesRegularExpression('/^(\xc3\xa4){900,1024}\Q' . $note . '\E$/D', $details->message);
        self::assertSame("\x08\x07", $details->details[0]->value);
        self::assertSame('', $server->log());
    }

    /** @dataProvider largeMetadata */
    #[DataProvider('largeMetadata')]
    public function testMetadataAboveTheLimitIsInternalWithALogLine(string $handler, string $what): void
    {
        $server = $this->serve("'get' => static function (\$request, Call \$call) { $handler }");

        $answer = $server->post(self::GET, self::USER_228);

        self::assertSame(Status::Internal->value, $answer->status());
        $message = rawurldecode((string) $answer->field('grpc-message'));
        self::assertMatchesRegularExpression("~^$what of /api.Users/Get has 300\\d\\d\\d bytes, the limit is 8192$~", $message);
        self::assertNull($answer->field('x-large'));
        self::assertTrue($server->awaitLog("gRPC calls refused (metadata_too_large): 1, the last from 127.0.0.1:"));
        self::assertStringContainsString($message, $server->log());
    }

    /** @return iterable<string, array{string, string}> */
    public static function largeMetadata(): iterable
    {
        yield 'initial' => ['$call->begin(["x-large" => str_repeat("a", 300_000)]); return new User();', 'the initial metadata'];
        yield 'trailing' => ['$call->trailer("x-large", str_repeat("a", 300_000)); return new User();', 'the trailing metadata'];
    }

    /** @dataProvider largeStatuses */
    #[DataProvider('largeStatuses')]
    public function testAStatusAboveTheLimitKeepsItsCodeAndMessageWithALogLine(string $exception, string $dropped, bool $keepsMetadata): void
    {
        $server = $this->serve("'get' => static fn() => throw $exception");

        $answer = $server->post(self::GET, self::USER_228);

        self::assertStatus(Status::NotFound, $answer, 'why');
        self::assertNull($answer->field('grpc-status-details-bin'));
        self::assertSame($keepsMetadata ? 'kept' : null, $answer->field('x-small'));
        self::assertNull($answer->field('x-large'));
        self::assertTrue($server->awaitLog('gRPC calls refused (metadata_too_large): 1, the last from 127.0.0.1:'));
        self::assertMatchesRegularExpression("~the status NOT_FOUND with its metadata of /api.Users/Get has 300\\d\\d\\d bytes, the limit is 8192: $dropped dropped~", $server->log());
    }

    /** @return iterable<string, array{string, string, bool}> */
    public static function largeStatuses(): iterable
    {
        yield 'details' => ['new StatusException(Status::NotFound, "why", [new User(name: str_repeat("a", 225_000))], ["x-small" => "kept"])', 'the details are', true];
        yield 'metadata' => ['new StatusException(Status::NotFound, "why", metadata: ["x-large" => str_repeat("a", 300_000), "x-small" => "lost"])', 'its metadata is', false];
    }

    public function testTheLimitOfMetadataMayBeRaised(): void
    {
        $server = $this->serve('"get" => static function ($request, Call $call) { $call->trailer("x-large", str_repeat("a", 10_000)); return new User(); }', ', new ServerOptions(limits: new Limits(messages: new MessageLimits(metadataBytes: 20_000)))');

        $answer = $server->post(self::GET, self::USER_228);

        self::assertStatus(Status::Ok, $answer);
        self::assertSame(str_repeat('a', 10_000), $answer->field('x-large'));
    }

    public function testALimitOfMetadataThatIsTooLowIsRefused(): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage('The limit messages.metadataBytes must be at least 4096, got 4095');

        new MessageLimits(metadataBytes: 4_095);
    }

    public function testAMessageThatCannotBeEncodedIsInternalWithALogLine(): void
    {
        $server = $this->serve('"get" => static fn() => new User(name: "\xff")');

        self::assertSame(Status::Internal->value, $server->post(self::GET, self::USER_228)->status());
        self::assertTrue($server->awaitLog('EncodingException'));
    }

    public function testTheDeadlineCancelsTheHandlerAndTheClientKnowsWhy(): void
    {
        $server = $this->serve('"get" => static function ($request, Call $call) { say($call->timeLeft() <= 0.1 ? "in time" : "wrong"); try { delay(60); } finally { say("cancelled"); } }');

        // On a busy machine the deadline may pass before the handler begins, or before the request arrives: then there is no answer.
        Timing::until(static function () use ($server, &$answer): bool {
            $answer = $server->post(self::GET, self::USER_228, '-H', 'grpc-timeout: 100m');

            return $answer->status() !== null && str_contains($server->log(), 'in time');
        }, 'a handler begins before the deadline');

        self::assertStatus(Status::DeadlineExceeded, $answer, 'the deadline has passed');
        self::assertTrue($server->awaitLog("in time\ncancelled\n"));
        self::assertStringNotContainsString('failed', $server->log());
    }

    public function testAClientThatGoesAwayCancelsTheHandler(): void
    {
        $server = $this->serve('"list" => static function () { yield new User(1); try { delay(60); } finally { say("cancelled"); } }');

        $this->leaveAfterTheFirstMessage($server);

        self::assertTrue($server->awaitLog("cancelled\n"));
        self::assertStringNotContainsString('failed', $server->log());
    }

    public function testAHandlerThatReadsIsCancelledOnceWhenItsClientGoesAway(): void
    {
        $server = $this->serve(<<<'PHP'
            "import" => static function ($requests) {
                try {
                    foreach ($requests as $request) {
                        say("read");
                    }
                } catch (Throwable $end) {
                    say(get_class($end));
                    throw $end;
                } finally {
                    delay(0.01);
                    say("cleaned up");
                }
            }
            PHP);
        $wire = new Wire($server->connect());
        $wire->send(Wire::call(1, self::IMPORT) . Wire::frame(Wire::DATA, 0, 1, self::EMPTY_MESSAGE));
        self::assertTrue($server->awaitLog("read\n"));

        $wire->close();

        self::assertTrue($server->awaitLog("read\nWeft\\Runtime\\CancelledException\ncleaned up\n"), $server->log());
        self::assertStringNotContainsString('failed', $server->log());
    }

    private function leaveAfterTheFirstMessage(GrpcProcess $server): void
    {
        $wire = new Wire($server->connect());
        $wire->send(Wire::call(1, self::LIST) . Wire::frame(Wire::DATA, Wire::END_STREAM, 1, self::EMPTY_MESSAGE));
        self::assertNotNull($wire->await(Wire::DATA));
        $wire->close();
    }

    public function testAHandlerThatGoesOnAfterTheClientHasLeftIsStopped(): void
    {
        $server = $this->serve(<<<'PHP'
            "list" => static function () {
                try {
                    for ($i = 0; true; $i++) {
                        yield new User(name: str_repeat("a", 10_000));
                        try { delay(0.001); } catch (Throwable) {}
                    }
                } finally {
                    say("stopped");
                }
            }
            PHP);

        $this->leaveAfterTheFirstMessage($server);

        self::assertTrue($server->awaitLog("stopped\n"));
        self::assertStringNotContainsString('failed', $server->log());
    }

    public function testAClientThatDoesNotReadHoldsTheHandlerBack(): void
    {
        $server = $this->serve(<<<'PHP'
            "list" => static function ($request, Call $call) {
                try {
                    for ($i = 1; $i < 100_000; $i++) {
                        yield new User(name: str_repeat("a", 10_000));
                    }
                } finally {
                    say("sent $i, memory " . (memory_get_peak_usage() < 20_000_000 ? "small" : "large"));
                }
            }
            PHP);

        $wire = new Wire($server->connect());
        // Only what the system buffers holds the server back, not the windows of HTTP/2.
        $wire->send(Wire::frame(Wire::SETTINGS, 0, 0, pack('nN', 4, 0x7fff_ffff)) . Wire::frame(Wire::WINDOW_UPDATE, 0, 0, pack('N', 0x7fff_0000)));
        $wire->send(Wire::call(1, self::LIST) . Wire::frame(Wire::DATA, Wire::END_STREAM, 1, self::EMPTY_MESSAGE));
        self::assertNotNull($wire->await(Wire::DATA));
        usleep(1_000_000);
        $wire->close();

        self::assertTrue($server->awaitLog("memory small\n"));
        self::assertLessThan(5_000, (int) substr($server->log(), 5), $server->log());
    }

    public function testInterceptorsSeeEveryCallAndTheFirstIsTheOutermost(): void
    {
        $server = $this->serve(
            '"get" => static fn($request, Call $call) => new User(name: $call->attribute("user"))',
            <<<'PHP'
                , new ServerOptions(interceptors: [
                    static function (Call $call, mixed $request, Closure $next): mixed {
                        return $call->value("authorization") === "secret" ? $next($request) : throw new StatusException(Status::Unauthenticated, "who are you?");
                    },
                    static function (Call $call, mixed $request, Closure $next): mixed {
                        $reply = $next($request instanceof GetUserRequest ? new GetUserRequest(1) : $request);
                        return is_iterable($reply) ? (static function () use ($reply) { foreach ($reply as $one) { yield new User($one->id * 10); } })() : $reply;
                    },
                    static fn(Call $call, mixed $request, Closure $next): mixed => [$call->setAttribute("user", "me"), $next($request)][1],
                ])
                PHP,
        );

        self::assertStatus(Status::Unauthenticated, $server->post(self::GET, self::USER_228), 'who are you?');
        self::assertSame(["\x1a\x02me"], $server->post(self::GET, self::USER_228, '-H', 'authorization: secret')->messages());
        self::assertSame(["\x08\x0a", "\x08\x14"], $server->post(self::LIST, self::EMPTY_MESSAGE, '-H', 'authorization: secret')->messages());
    }

    public function testTasksOfAHandlerEndBeforeItsAnswer(): void
    {
        $server = $this->serve('"get" => static function () { async(static function () { delay(0.05); throw new DomainException("of a child"); }); return new User(); }');

        self::assertSame(Status::Unknown->value, $server->post(self::GET, self::USER_228)->status());
        self::assertTrue($server->awaitLog('DomainException: of a child'));
    }

    public function testSigtermEndsTheServerOnceWhatIsInFlightIsAnswered(): void
    {
        $server = $this->serve('"get" => static function () { say("working"); exec("kill " . getmypid()); delay(0.3); return new User(5); }');

        $server->endsItself();

        // Not with curl, which takes the GOAWAY for the end of its call.
        [$exit, $output] = $this->grpcurl($server, 'api.Users/Get');

        self::assertSame(0, $exit, $output);
        self::assertSame(['id' => '5'], json_decode($output, true));
        self::assertSame([0, "ended\n"], $server->stop());
    }

    public function testGrpcSharesThePortOfAnHttpServer(): void
    {
        $server = $this->serve(more: '$app->http("127.0.0.1:0")->get("/", static fn() => Response::text("hello"));');

        self::assertStatus(Status::Ok, $server->post(self::GET, self::USER_228));
        self::assertSame('hello', $server->post('/', '', '-X', 'GET', '-H', 'Content-Type: text/plain', '--http1.1')->body);
    }

    /**
     * Without descriptors PHP cannot open the file of a class.
     *
     * @dataProvider firstCalls
     */
    #[DataProvider('firstCalls')]
    public function testAServerWithoutDescriptorsAnswersAFirstCallOfAnyKind(string $path, string $logged = ''): void
    {
        $server = $this->serve(
            '"get" => static fn() => throw new LogicException("broken"), "import" => static fn() => throw new StatusException(Status::NotFound, "none")',
        );
        $wire = new Wire($server->connect());
        self::assertNotNull($wire->await(Wire::SETTINGS), 'the connection is accepted');
        exec("prlimit --pid {$server->pid()} --nofile=3:", $output, $code);
        self::assertSame(0, $code);

        $wire->send(Wire::call(1, $path) . Wire::frame(Wire::DATA, Wire::END_STREAM, 1, self::EMPTY_MESSAGE));

        self::assertNotNull($wire->await(Wire::HEADERS));
        self::assertTrue($server->awaitLog($logged), $server->log());
        exec("prlimit --pid {$server->pid()} --nofile=1024:");
        self::assertStatus(Status::Ok, $server->post(self::LIST, self::EMPTY_MESSAGE));
        self::assertStringNotContainsString('Fatal', $server->log());
    }

    public function testTheMessageClassesAreLoadedBeforeTheServerListens(): void
    {
        $server = $this->serve(more: <<<'PHP'
            $listening = new Weft\Grpc\Server([new Service([])]);
            $listening->listen('127.0.0.1:0');
            say(class_exists(Weft\Examples\Users\UsersFile::class, false) ? 'loaded' : 'not loaded');
            PHP);

        self::assertSame("loaded\n", $server->log());
    }

    /** @return iterable<string, array{0: string, 1?: string}> */
    public static function firstCalls(): iterable
    {
        yield 'a failure' => [self::GET, 'LogicException: broken'];
        yield 'a status' => [self::IMPORT];
        yield 'a stream' => [self::LIST];
        yield 'a stream both ways' => [self::LOOKUP];
        yield 'health' => ['/grpc.health.v1.Health/Check'];
        yield 'a watch of health' => ['/grpc.health.v1.Health/Watch'];
        yield 'an unknown method' => ['/api.Users/Nothing', 'refused'];
    }
}
