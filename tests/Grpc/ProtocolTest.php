<?php

declare(strict_types=1);

namespace Weft\Tests\Grpc;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Grpc\Status;

/** What a server answers to requests as they come over the wire, good and bad. */
final class ProtocolTest extends GrpcTestCase
{
    public function testAUnaryCallIsAnsweredWithOneMessageAndTheStatusOk(): void
    {
        $answer = $this->serve()->post(self::GET, self::USER_228);

        self::assertStatus(Status::Ok, $answer);
        self::assertSame(200, $answer->httpStatus());
        self::assertSame('application/grpc', $answer->field('content-type'));
        self::assertSame(["\x08\xE4\x01\x12\x03a@b\x1a\x01A!\0\0\0\0\0\0\xf8\x3f"], $answer->messages());
    }

    public function testAStreamIsAnsweredWithItsMessages(): void
    {
        $answer = $this->serve()->post(self::LIST, self::EMPTY_MESSAGE);

        self::assertStatus(Status::Ok, $answer);
        self::assertSame(["\x08\x01", "\x08\x02"], $answer->messages());
    }

    public function testAClientsStreamIsReadToItsEnd(): void
    {
        $answer = $this->serve()->post(self::IMPORT, str_repeat(self::frame("\x08\x01"), 70_000));

        self::assertStatus(Status::Ok, $answer);
        self::assertSame(["\x08\xF0\xA2\x04"], $answer->messages());
    }

    public function testManySmallMessagesMayWaitForASlowHandler(): void
    {
        $server = $this->serve('"import" => static function ($requests) { delay(0.5); return new ImportSummary(iterator_count($requests)); }');
        $wire = new Wire($server->connect());

        $wire->send(Wire::call(1, self::IMPORT) . str_repeat(Wire::frame(Wire::DATA, 0, 1, self::EMPTY_MESSAGE), 9_000) . Wire::frame(Wire::DATA, Wire::END_STREAM, 1, self::EMPTY_MESSAGE));

        self::assertSame(self::frame("\x08\xA9\x46"), $wire->await(Wire::DATA)[2] ?? null);
    }

    public function testUnknownMethodsAndServicesAreUnimplemented(): void
    {
        $server = $this->serve();

        self::assertStatus(Status::Unimplemented, $server->post('/api.Users/Nothing', self::EMPTY_MESSAGE), 'there is no method /api.Users/Nothing');
        self::assertStatus(Status::Unimplemented, $server->post('/api.Nobody/Get', self::EMPTY_MESSAGE), 'there is no method /api.Nobody/Get');
    }

    public function testAnotherContentTypeIs415(): void
    {
        $server = $this->serve();

        self::assertSame(415, $server->post(self::GET, '{}', '-H', 'Content-Type: application/json')->httpStatus());
        self::assertSame(415, $server->post(self::GET, '', '-H', 'Content-Type: application/grpcfoo')->httpStatus());
        self::assertSame(415, $server->post(self::GET, self::USER_228, '--http1.1')->httpStatus());
        self::assertTrue($server->awaitLog('gRPC calls refused (not_grpc): 1, the last from 127.0.0.1:'));
    }

    public function testAnotherMethodOfHttpIs405(): void
    {
        $server = $this->serve();

        self::assertSame(405, $server->post(self::GET, self::USER_228, '-X', 'PUT')->httpStatus());
        self::assertTrue($server->awaitLog('gRPC calls refused (http_method): 1, the last from 127.0.0.1:'));
    }

    public function testAnotherHttpMethodThanPostIs405(): void
    {
        self::assertSame(405, $this->serve()->post(self::GET, '', '-X', 'PUT')->httpStatus());
    }

    public function testAMessageMayBeCompressed(): void
    {
        $server = $this->serve();
        foreach (['gzip' => gzencode("\x08\xE4\x01"), 'deflate' => gzcompress("\x08\xE4\x01")] as $encoding => $message) {
            $answer = $server->post(self::GET, self::frame($message, 1), '-H', "grpc-encoding: $encoding");
            self::assertStatus(Status::Ok, $answer);
            self::assertStringStartsWith("\x08\xE4\x01", $answer->messages()[0]);
        }
    }

    public function testTheAnswerIsCompressedWhereTheHandlerWantsItAndTheClientCan(): void
    {
        $server = $this->serve('"get" => static function ($request, Call $call) { say($call->compress(true) ? "yes" : "no"); return new User(name: str_repeat("a", 1000)); }');

        $answer = $server->post(self::GET, self::USER_228, '-H', 'grpc-accept-encoding: br, gzip');

        self::assertSame('gzip', $answer->field('grpc-encoding'));
        self::assertSame("\x01", $answer->body[0]);
        self::assertStringEndsWith(str_repeat('a', 1000), (string) gzdecode($answer->messages()[0]));
        self::assertSame("\0", $server->post(self::GET, self::USER_228)->body[0]);
        self::assertSame("yes\nno\n", $server->log());
    }

    public function testAnUnknownEncodingIsUnimplementedAndTheKnownOnesAreNamed(): void
    {
        $answer = $this->serve()->post(self::GET, self::frame('x', 1), '-H', 'grpc-encoding: br');

        self::assertStatus(Status::Unimplemented, $answer, 'the grpc-encoding "br" is not known here');
        self::assertSame('identity,gzip,deflate,zstd', $answer->field('grpc-accept-encoding'));
    }

    /** @dataProvider brokenBodies */
    #[DataProvider('brokenBodies')]
    public function testABrokenBodyEndsItsCallOnly(string $body, Status $status, string $message): void
    {
        $server = $this->serve(arguments: ', new ServerOptions(limits: new Limits(messages: new MessageLimits(bytes: 1000)))');

        self::assertStatus($status, $server->post(self::GET, $body, '-H', 'grpc-encoding: gzip'), $message);
        self::assertStatus(Status::Ok, $server->post(self::GET, self::USER_228));
        self::assertStringNotContainsString(' error ', $server->log());
    }

    /** @return iterable<string, array{string, Status, string}> */
    public static function brokenBodies(): iterable
    {
        yield 'no message' => ['', Status::Unimplemented, 'the method takes exactly one message, the client sent none'];
        yield 'two messages' => [self::USER_228 . self::USER_228, Status::Unimplemented, 'the method takes exactly one message, the client sent more'];
        yield 'half a prefix' => ["\0\0", Status::Internal, 'the stream ended inside a message'];
        yield 'half a message' => ["\0\0\0\0\x03\x08", Status::Internal, 'the stream ended inside a message'];
        yield 'an unknown flag' => ["\2\0\0\0\0", Status::Internal, 'a message has the unknown flags 0x02 in its prefix'];
        yield 'too large' => ["\0\0\0\x03\xe9" . str_repeat('a', 1001), Status::ResourceExhausted, 'a message has 1001 bytes, the limit is 1000'];
        yield 'a bomb' => [self::frame((string) gzencode(str_repeat('a', 500_000)), 1), Status::ResourceExhausted, 'a message has more than 1000 bytes, the limit, once it is decompressed'];
    }

    public function testAMessageMarkedAsCompressedNeedsAnEncoding(): void
    {
        $answer = $this->serve()->post(self::GET, self::frame('x', 1));

        self::assertStatus(Status::Internal, $answer, 'a message is marked as compressed, but the call names no grpc-encoding');
    }

    public function testBytesThatAreNoSuchMessageAreInternal(): void
    {
        $server = $this->serve();

        self::assertSame(Status::Internal->value, $server->post(self::GET, self::frame("\x08"))->status());
        self::assertSame(Status::Internal->value, $server->post(self::IMPORT, self::frame("\x08\x01") . self::frame("\x12\x05a"))->status());
        self::assertSame('', $server->log());
    }

    public function testMetadataGoesBothWays(): void
    {
        $server = $this->serve(<<<'PHP'
            "get" => static function ($request, Call $call) {
                $call->begin(["x-first" => ["1", "2"], "x-bytes-bin" => "\xff\xfe"]);
                $call->trailer("x-last", $call->value("x-asked"));
                $call->trailer("x-last-bin", strrev($call->value("x-asked-bin")));
                return new User();
            }
            PHP);

        $answer = $server->post(self::GET, self::USER_228, '-H', 'x-asked: this', '-H', 'x-asked-bin: AAH/');

        self::assertStatus(Status::Ok, $answer);
        self::assertStringContainsString("x-first: 1\r\nx-first: 2\r\n", $answer->head);
        self::assertSame('//4', $answer->field('x-bytes-bin'));
        self::assertSame('this', $answer->field('x-last'));
        self::assertSame('/wEA', $answer->field('x-last-bin'));
    }

    public function testGrpcWebHasItsTrailersInTheBody(): void
    {
        $answer = $this->serve()->post(self::GET, self::USER_228, '--http1.1', '-H', 'Content-Type: application/grpc-web+proto');

        self::assertSame('application/grpc-web+proto', $answer->field('content-type'));
        self::assertSame("\x80\0\0\0\x10grpc-status: 0\r\n", substr($answer->body, -21));
        self::assertSame(20, \strlen($answer->messages()[0]));
    }

    public function testGrpcWebTextIsTheSameInBase64(): void
    {
        $answer = $this->serve()->post(self::GET, base64_encode(self::USER_228), '-H', 'Content-Type: application/grpc-web-text');

        $body = implode('', array_map(base64_decode(...), preg_split('/(?<==)(?!=)/', $answer->body)));
        self::assertStringStartsWith("\0\0\0\0\x14\x08\xE4\x01", $body);
        self::assertStringEndsWith("grpc-status: 0\r\n", $body);
    }

    public function testAPageOfAnAllowedOriginMayCall(): void
    {
        $server = $this->serve(arguments: ', new ServerOptions(webOrigins: ["https://app.example"])');
        $ask = static fn(string $origin): Answer => $server->post(self::GET, '', '--http1.1', '-X', 'OPTIONS', '-H', 'Content-Type: text/plain', '-H', "Origin: $origin", '-H', 'Access-Control-Request-Method: POST', '-H', 'Access-Control-Request-Headers: content-type,x-grpc-web');

        $allowed = $ask('https://app.example');

        self::assertSame(204, $allowed->httpStatus());
        self::assertSame('https://app.example', $allowed->field('access-control-allow-origin'));
        self::assertSame('content-type,x-grpc-web', $allowed->field('access-control-allow-headers'));
        self::assertNull($ask('https://other.example')->field('access-control-allow-origin'));
    }

    public function testAPageOfAnAllowedOriginMayReadTheMetadata(): void
    {
        $server = $this->serve(<<<'PHP'
            "get" => static function ($request, Call $call) {
                if ($request->id === 1) {
                    throw new StatusException(Status::NotFound, "none", [new User(7)], ["x-more" => ["a", "b"]]);
                }
                $call->begin(["x-first" => "a", "x-bytes-bin" => "b"]);
                return new User();
            }
            PHP, ', new ServerOptions(webOrigins: ["https://app.example"])');
        $exposed = static function (string $body) use ($server): array {
            $answer = $server->post(self::GET, $body, '--http1.1', '-H', 'Content-Type: application/grpc-web+proto', '-H', 'Origin: https://app.example');
            $names = explode(',', (string) $answer->field('access-control-expose-headers'));
            sort($names);

            return $names;
        };

        self::assertSame(['grpc-message', 'grpc-status', 'grpc-status-details-bin', 'x-bytes-bin', 'x-first'], $exposed(self::USER_228));
        self::assertSame(['grpc-message', 'grpc-status', 'grpc-status-details-bin', 'x-more'], $exposed(self::frame("\x08\x01")));
    }
}
