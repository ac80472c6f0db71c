<?php

declare(strict_types=1);

namespace Weft\Tests\Grpc;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Grpc\Status;

/** Each refusal of a gRPC server is counted by its reason, and logged with reason, peer and details. */
final class RefusalTest extends GrpcTestCase
{
    private const METRICS = '$app->metrics("127.0.0.1:0");';
    private const WATCH = '/grpc.health.v1.Health/Watch';
    /** Runs until its client leaves. */
    private const LASTS = "'get' => static function () { say('began'); delay(600); return new User(); }";

    /**
     * @dataProvider refused
     *
     * @param \Closure(GrpcProcess): void $ask
     */
    #[DataProvider('refused')]
    public function testARefusalIsLoggedWithItsReasonAndPeerAndCounted(string $reason, string $detail, \Closure $ask, string $options = '', string $methods = ''): void
    {
        $server = $this->serve($methods, ", new ServerOptions($options)", more: self::METRICS);

        $ask($server);

        self::assertRefused($server, $reason, $detail);
    }

    /** @return iterable<string, array{0: string, 1: string, 2: \Closure(GrpcProcess): void, 3?: string, 4?: string}> */
    public static function refused(): iterable
    {
        $post = static fn(Status $status, string $message, string $path, string $body, string ...$arguments): \Closure => static function (GrpcProcess $server) use ($status, $message, $path, $body, $arguments): void {
            self::assertStatus($status, $server->post($path, $body, ...$arguments), $message);
        };
        yield 'no such method' => ['unknown_method', $message = 'there is no method /api.Users/Nothing', $post(Status::Unimplemented, $message, '/api.Users/Nothing', self::EMPTY_MESSAGE)];
        yield 'an encoding that is not known' => ['malformed_head', $message = 'the grpc-encoding "br" is not known here', $post(Status::Unimplemented, $message, self::GET, self::USER_228, '-H', 'grpc-encoding: br')];
        yield 'a deadline that is none' => ['malformed_head', $message = 'the grpc-timeout is malformed', $post(Status::Internal, $message, self::GET, self::USER_228, '-H', 'grpc-timeout: soon')];
        yield 'no message' => ['malformed_message', $message = 'the method takes exactly one message, the client sent none', $post(Status::Unimplemented, $message, self::GET, '')];
        yield 'half a message' => ['malformed_message', $message = 'the stream ended inside a message', $post(Status::Internal, $message, self::GET, "\0\0\0\0\x03\x08")];
        yield 'a large message' => ['message_too_large', $message = 'a message has 1001 bytes, the limit is 1000', $post(Status::ResourceExhausted, $message, self::GET, self::frame(str_repeat('a', 1001))), 'limits: new Limits(messages: new MessageLimits(bytes: 1000))'];
        yield 'large metadata' => [
            'metadata_too_large', 'the trailing metadata of /api.Users/Get has \d+ bytes, the limit is 8192', static function (GrpcProcess $server): void {
                self::assertSame(Status::Internal->value, $server->post(self::GET, self::USER_228)->status());
            }, '', "'get' => static function (\$request, Call \$call) { \$call->trailer('x-large', str_repeat('a', 9_000)); return new User(); }",
        ];
        yield 'a request that stops arriving' => [
            'request_too_slow', '\d bytes of the request arrived in 300ms, 1 KiB a second is the least', self::endsStream(1, Wire::call(1, self::GET) . Wire::frame(Wire::DATA, 0, 1, "\0\0\0")),
            'limits: new Limits(messages: new MessageLimits(requestTimeout: 0.3))',
        ];
        yield 'a full queue' => ['queue_full', $message = 'the server has 1 calls waiting, which is its limit', self::occupied($post(Status::Unavailable, $message, self::GET, self::USER_228), waiting: 1), 'limits: new Limits(inFlight: 1, queue: 1, clientShare: 1.0)', self::LASTS];
        yield 'the share of the queue' => ['queue_full', $message = 'the client address has 1 calls waiting, which is its limit', self::occupied($post(Status::ResourceExhausted, $message, self::GET, self::USER_228), waiting: 1), 'limits: new Limits(inFlight: 1, queue: 2)', self::LASTS];
        yield 'a full method' => [
            'method_queue_full', $message = 'api.Users/Get has 1 calls in progress and 0 waiting, which is all it takes', self::occupied($post(Status::ResourceExhausted, $message, self::GET, self::USER_228)),
            "limits: new Limits(methods: ['api.Users/Get' => new \\Weft\\Grpc\\MethodLimits(inFlight: 1, queue: 0)])", self::LASTS,
        ];
        yield 'a deadline that passes in the queue' => [
            'expired_in_queue', 'the deadline has passed', self::occupied(self::endsStream(1, Wire::call(1, self::GET, ['grpc-timeout' => '200m']) . Wire::frame(Wire::DATA, Wire::END_STREAM, 1, self::USER_228))),
            'limits: new Limits(inFlight: 1, clientShare: 1.0)', self::LASTS,
        ];
        yield 'more streams than a connection has' => [
            'stream_limit', 'the connection has 1 \w+ open, which is its limit', self::endsStream(3, Wire::call(1, self::IMPORT) . Wire::call(3, self::IMPORT)),
            'limits: new Limits(streams: new StreamLimits(streamsPerConnection: 1))',
        ];
        $watch = static fn(int $stream): string => Wire::call($stream, self::WATCH) . Wire::frame(Wire::DATA, Wire::END_STREAM, $stream, self::EMPTY_MESSAGE);
        yield 'more watches than a connection has' => [
            'watch_limit', 'the connection has 1 \w+( \w+)? open, which is its limit', self::endsStream(3, $watch(1) . $watch(3)), 'limits: new Limits(streams: new StreamLimits(watchesPerConnection: 1))',
        ];
        yield 'another method of HTTP' => ['http_method', 'gRPC is called by POST, not by PUT', static function (GrpcProcess $server): void {
            self::assertSame(405, $server->post(self::GET, self::USER_228, '-X', 'PUT')->httpStatus());
        }];
        yield 'no gRPC' => ['not_grpc', 'POST /api.Users/Get is not gRPC', static function (GrpcProcess $server): void {
            self::assertSame(415, $server->post(self::GET, '{}', '-H', 'Content-Type: application/json')->httpStatus());
        }];
    }

    /** @dataProvider calledWithJson */
    #[DataProvider('calledWithJson')]
    public function testARefusedCallWithJsonIsLoggedAndCountedToo(string $reason, string $detail, int $status, string ...$arguments): void
    {
        $server = $this->keep(GrpcProcess::launch([__DIR__ . '/Library/server.php', 'metrics']));

        self::assertSame($status, $server->post(...$arguments)->httpStatus());

        self::assertRefused($server, $reason, $detail);
    }

    /** @return iterable<string, array{string, string, int, string, string, string, 6?: string, 7?: string, 8?: string}> */
    public static function calledWithJson(): iterable
    {
        $takes = 'takes requests with the content type application/json, without a body too, or with the field x-requested-with';
        yield 'a form of a page of another origin' => ['cross_site', "/library.Library/CreateBook $takes", 400, '/v1/shelves/1/books', 'title=x', '-H', 'content-type: application/x-www-form-urlencoded'];
        yield 'a link to a path of every method of HTTP' => ['cross_site', "/library.Library/VisitBook $takes", 400, '/v1/visits/x', '', '-H', 'content-type:', '-X', 'GET'];
        yield 'a compressed body' => ['malformed_head', '/library.Library/CreateBook takes a body that is not compressed', 400, '/v1/shelves/1/books', '{}', '-H', 'content-type: application/json', '-H', 'content-encoding: gzip'];
        yield 'a method that takes a stream' => ['unknown_method', '/library.Library/Import takes a stream: call it by gRPC', 501, '/v1/import', '{}', '-H', 'content-type: application/json'];
        yield 'a large body' => ['message_too_large', '.*the limit is 200', 429, '/v1/shelves/1/books/2:lend', '{"reader": "' . str_repeat('x', 200) . '"}', '-H', 'content-type: application/json'];
    }

    public function testTheMetricHasEachReasonBeforeTheFirstRefusal(): void
    {
        $server = $this->serve(more: self::METRICS);

        preg_match_all('/^weft_grpc_refused_total\{reason="(\w+)"\} 0$/m', self::metrics($server), $series);

        // Each of them has a case above.
        $tested = [...array_column(iterator_to_array(self::refused()), 0), ...array_column(iterator_to_array(self::calledWithJson()), 0)];
        self::assertEqualsCanonicalizing([...array_unique($tested)], $series[1]);
        self::assertCount(14, $series[1]);
    }

    /**
     * Sends frames and waits until the server ends that stream.
     *
     * @return \Closure(GrpcProcess): void
     */
    private static function endsStream(int $stream, string $frames): \Closure
    {
        return static function (GrpcProcess $server) use ($stream, $frames): void {
            $wire = new Wire($server->connect());
            $wire->send($frames);
            do {
                [$flags, $answered] = $wire->await(Wire::HEADERS) ?? self::fail("stream $stream is not answered");
            } while ($answered !== $stream);
            self::assertSame(Wire::END_STREAM, $flags & Wire::END_STREAM);
        };
    }

    /**
     * The same while a call of {@see self::LASTS} runs and so many wait behind it.
     *
     * @param \Closure(GrpcProcess): void $ask
     *
     * @return \Closure(GrpcProcess): void
     */
    private static function occupied(\Closure $ask, int $waiting = 0): \Closure
    {
        return static function (GrpcProcess $server) use ($ask, $waiting): void {
            $wire = new Wire($server->connect());
            for ($stream = 1; $stream <= 1 + 2 * $waiting; $stream += 2) {
                $wire->send(Wire::call($stream, self::GET) . Wire::frame(Wire::DATA, Wire::END_STREAM, $stream, self::USER_228));
                self::assertTrue($server->awaitLog('began'));
            }
            // Its answer says that the calls before it have arrived.
            $wire->send(Wire::frame(Wire::PING, payload: '12345678'));
            self::assertNotNull($wire->await(Wire::PING));
            $ask($server);
            $wire->close();
        };
    }

    private static function assertRefused(GrpcProcess $server, string $reason, string $detail): void
    {
        self::assertTrue($server->awaitLog("($reason)"), $server->log());
        self::assertMatchesRegularExpression("~gRPC calls refused \\($reason\\): 1, the last from 127\\.0\\.0\\.1:\\d+: $detail$~m", $server->log());
        self::assertStringContainsString("weft_grpc_refused_total{reason=\"$reason\"} 1\n", self::metrics($server));
    }

    private static function metrics(GrpcProcess $server): string
    {
        self::assertTrue($server->awaitLog('/metrics'));
        self::assertSame(1, preg_match('~http://\S+/metrics~', $server->log(), $address), $server->log());

        return (string) file_get_contents($address[0]);
    }
}
