<?php

declare(strict_types=1);

namespace Weft\Tests\Grpc;

use Weft\Examples\Users\GetUserRequest;
use Weft\Examples\Users\ListUserRequest;
use Weft\Examples\Users\UsersClient;
use Weft\Grpc\Client\CallSpan;
use Weft\Grpc\Client\Http2Channel;
use Weft\Grpc\Client\TracedChannel;
use Weft\Grpc\Status;
use Weft\Grpc\StatusException;
use Weft\Runtime\Trace;

use function Weft\run;

require_once __DIR__ . '/../../examples/users/autoload.php';

/** W3C Trace Context in the metadata of calls, from clients and to handlers. */
final class TraceTest extends GrpcTestCase
{
    private const PARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    /** Answers with what arrived, with the span of the handler, and with the current one. */
    private const ECHO = '"get" => static fn($request, Call $call) => new User(email: "{$call->value("traceparent")} {$call->value("tracestate")}", name: "{$call->trace()->traceparent} " . Weft\Runtime\Trace::current()?->traceparent)';
    private const LIST_ECHO = '"list" => static fn($request, Call $call) => [new User(email: (string) $call->value("traceparent")), new User(2)]';

    public function testAHandlerRunsInASpanOfTheTraceOfItsCall(): void
    {
        $server = $this->serve(self::ECHO);

        $reply = $server->post(self::GET, self::USER_228, '-H', 'traceparent: ' . self::PARENT, '-H', 'tracestate: vendor=1')->messages()[0];

        self::assertSame(1, preg_match('/' . self::PARENT . ' vendor=1.*(00-0af7651916cd43dd8448eb211c80319c-(?!b7ad6b7169203331)[0-9a-f]{16}-01) (\S{55})/s', $reply, $spans), $reply);
        self::assertSame($spans[1], $spans[2], 'the span of the call is the current one');
    }

    public function testACallWithoutATraceBeginsOne(): void
    {
        $server = $this->serve(self::ECHO);

        $replies = [$server->post(self::GET, self::USER_228)->messages()[0], $server->post(self::GET, self::USER_228, '-H', 'traceparent: 00-0-0-00')->messages()[0]];

        foreach ($replies as $reply) {
            self::assertMatchesRegularExpression('/00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2} /', $reply);
        }
    }

    public function testACallContinuesTheTraceOfItsCaller(): void
    {
        $server = $this->serve(self::ECHO . ', ' . self::LIST_ECHO);
        $client = new UsersClient(Http2Channel::connect($server->address));

        run(static function () use ($client): void {
            self::assertSame(' ', $client->get(new GetUserRequest(1))->email, 'there is no trace outside of handlers');
            $trace = Trace::continue(self::PARENT, 'vendor=1');
            $trace->run(static function () use ($client, $trace): void {
                $user = $client->get(new GetUserRequest(1));
                self::assertSame("{$trace->traceparent} vendor=1", $user->email);
                self::assertStringStartsWith("00-{$trace->traceId()}-", $user->name);
                self::assertStringNotContainsString($trace->spanId(), $user->name, 'the handler has a span of its own');
                self::assertSame($trace->traceparent, [...$client->list(new ListUserRequest())][0]->email);
                self::assertSame(self::PARENT . ' ', $client->get(new GetUserRequest(1), metadata: ['traceparent' => self::PARENT])->email, 'the caller decides');
            });
        });
    }

    public function testTheTraceOfAnHttpRequestContinuesInTheCallsOfItsHandler(): void
    {
        $server = $this->serve(self::ECHO, more: '$app->http("127.0.0.1:0")->get("/", static fn(Request $request): array => [
            $request->trace()->traceparent,
            (new \Weft\Examples\Users\UsersClient(\Weft\Grpc\Client\Http2Channel::connect($request->header("host"))))->get(new GetUserRequest(1))->email,
        ]);');

        $answer = json_decode((string) file_get_contents("http://$server->address/", false, stream_context_create(['http' => ['header' => 'traceparent: ' . self::PARENT]])), true);

        self::assertStringStartsWith('00-0af7651916cd43dd8448eb211c80319c-', $answer[0]);
        self::assertSame("{$answer[0]} ", $answer[1]);
    }

    public function testAStateThatGrpcDoesNotSendIsNoFailureOfTheHandler(): void
    {
        $server = $this->serve(self::ECHO, more: '$app->http("127.0.0.1:0")->get("/", static fn(Request $request): array => [
            (new \Weft\Examples\Users\UsersClient(\Weft\Grpc\Client\Http2Channel::connect($request->header("host"))))->get(new GetUserRequest(1))->email,
        ]);');

        foreach (['a=é', "a=1,\tb=2"] as $state) {
            $answer = (string) file_get_contents("http://$server->address/", false, stream_context_create(['http' => ['header' => ['traceparent: ' . self::PARENT, "tracestate: $state"]]]));
            self::assertMatchesRegularExpression('/^\["00-0af7651916cd43dd8448eb211c80319c-[0-9a-f]{16}-01 "\]$/', $answer);
        }
    }

    public function testATracedChannelReportsASpanForEachCall(): void
    {
        $server = $this->serve(self::ECHO . ', ' . self::LIST_ECHO . ', "import" => static fn() => throw new StatusException(Status::NotFound, "none")');
        $spans = [];
        $client = new UsersClient(new TracedChannel(Http2Channel::connect($server->address), static function (CallSpan $span) use (&$spans): void {
            $spans[] = $span;
        }));
        $before = microtime(true);

        [$trace, $sent, $root] = run(static function () use ($client): array {
            $trace = Trace::continue(self::PARENT);
            $sent = $trace->run(static function () use ($client): array {
                $sent = [$client->get(new GetUserRequest(1))->email];
                foreach ($client->list(new ListUserRequest()) as $user) {
                    $sent[] = $user->email;
                }
                foreach ($client->list(new ListUserRequest()) as $user) {
                    break;
                }
                try {
                    $client->import([]);
                    self::fail('the call has failed');
                } catch (StatusException $failure) {
                    self::assertSame(Status::NotFound, $failure->status);
                }

                return $sent;
            });

            return [$trace, $sent, $client->get(new GetUserRequest(1))->email];
        });

        self::assertSame(['/api.Users/Get', '/api.Users/List', '/api.Users/List', '/api.Users/Import', '/api.Users/Get'], array_column($spans, 'method'));
        self::assertSame([Status::Ok, Status::Ok, null, Status::NotFound, Status::Ok], array_column($spans, 'status'));
        self::assertSame([$trace, $trace, $trace, $trace, null], array_column($spans, 'parent'));
        self::assertCount(5, array_unique(array_map(static fn(CallSpan $span): string => $span->trace->spanId(), $spans)));
        self::assertSame("{$spans[0]->trace->traceparent} ", $sent[0], 'the server continues the span of the client');
        self::assertSame($spans[1]->trace->traceparent, $sent[1]);
        self::assertSame("{$spans[4]->trace->traceparent} ", $root, 'without a current span the call begins a trace');
        self::assertSame($trace->traceId(), $spans[3]->trace->traceId());
        self::assertSame(['rpc.system' => 'grpc', 'rpc.service' => 'api.Users', 'rpc.method' => 'Import', 'rpc.grpc.status_code' => 5], $spans[3]->telemetry());
        foreach ($spans as $span) {
            self::assertGreaterThanOrEqual($before, $span->start);
            self::assertGreaterThan(0.0, $span->duration);
        }
    }
}
