<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

use PHPUnit\Framework\Attributes\DataProvider;

/** HTTP/1.1 byte by byte (RFC 9112): what clients may send, and what they get. */
final class Http1Test extends HttpTestCase
{
    private const ROUTES = <<<'PHP'
        $routes->route(["GET", "POST", "PUT"], "/", static fn(Request $r) => Response::text("[{$r->method()} {$r->protocol()} {$r->queryString()} {$r->body()} " . json_encode($r->trailers()) . "]"))
            ->get("/framed", static function (Request $r) { parse_str($r->queryString(), $fields); $body = $fields["body"] ?? "12345"; $status = (int) ($fields["status"] ?? 200); unset($fields["body"], $fields["status"]); return new Response($status, $fields, $body); })
            ->post("/ignores", static fn() => Response::text("no"))
            ->post("/late", static function (Request $r) { delay(0.2); return Response::text($r->body()); })
            ->get("/pieces", static fn() => Response::stream(["one,", "two"], "text/plain"))
            ->get("/trailers", static fn() => Response::stream(static function (BodyWriter $out) { $out->write("body"); $out->trailer("x-sum", "42"); $out->trailer("x-other", "1"); }, headers: ["trailer" => "x-sum"]));
        PHP;

    private static ?ServerProcess $server = null;

    private static function server(): ServerProcess
    {
        return self::$server ??= ServerProcess::start(self::ROUTES, ', limits: new Limits(header: new HeaderLimits(timeout: 1.0), keepalive: new Keepalive(idle: 1.0), body: new BodyLimits(timeout: 1.0))');
    }

    public static function tearDownAfterClass(): void
    {
        self::$server?->stop();
        self::$server = null;
    }

    public function testTrailersOfARequestAreThereOnceItsBodyWasRead(): void
    {
        $response = self::server()->exchangeBeforeIdle("POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n2\r\nab\r\n0\r\nX-Sum: 7\r\nx-sum: 8\r\n\r\n");

        self::assertSame('[POST 1.1  ab {"x-sum":["7","8"]}]', self::bodyOf($response));
    }

    public function testTrailersOfAnAnswerAreSentToAClientThatTakesThem(): void
    {
        $get = "GET /trailers HTTP/1.1\r\nHost: a\r\nConnection: close";

        self::assertStringEndsWith("4\r\nbody\r\n0\r\nx-sum: 42\r\n\r\n", self::server()->exchangeBeforeIdle("$get, TE\r\nTE: trailers\r\n\r\n"));
        self::assertStringEndsWith("4\r\nbody\r\n0\r\n\r\n", self::server()->exchangeBeforeIdle("$get\r\n\r\n"));
        self::assertStringContainsString('x-other: 1', self::server()->curl('/trailers', '-v', '--http2-prior-knowledge')[1]);
    }

    public function testABodyIsAskedForOnlyWhenItIsRead(): void
    {
        $head = "Host: a\r\nConnection: close\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n";
        $server = $this->serve(self::ROUTES);
        $socket = $server->connect();
        $from = microtime(true);
        fwrite($socket, "POST /late HTTP/1.1\r\n$head");

        self::assertSame("HTTP/1.1 100 Continue\r\n\r\n", fread($socket, 25));
        self::assertGreaterThan(0.15, microtime(true) - $from);
        fwrite($socket, 'hello');
        self::assertSame('hello', self::bodyOf(ServerProcess::readAll($socket)));

        $response = $server->exchange("POST /ignores HTTP/1.1\r\n$head");
        self::assertStatus(200, $response);
        self::assertStringNotContainsString('100 Continue', $response);
        self::assertStatus(417, $server->exchange("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nExpect: 200-ok\r\n\r\na"));
    }

    public function testABodyThatComesWithoutWaitingIsRead(): void
    {
        $response = self::server()->exchangeBeforeIdle("POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 5\r\nExpect: 100-Continue\r\n\r\nhello");

        self::assertStringContainsString('[POST 1.1  hello [', $response);
    }

    public function testPipelinedRequestsWithBodiesAreToldApart(): void
    {
        $one = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\none";
        $two = "PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;name=\"va;lue\"\r\nt\r\n02;x\r\nwo\r\n0;last\r\n\r\n";
        $three = "GET /?three HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

        $response = self::server()->exchangeBeforeIdle("$one\r\n$two$three");

        preg_match_all('/\[[A-Z].*?\[\]\]/', $response, $bodies);
        self::assertSame(['[POST 1.1  one []]', '[PUT 1.1  two []]', '[GET 1.1 three  []]'], $bodies[0], $response);
    }

    public function testPiecesOfAnySizeAreTheSameRequest(): void
    {
        $request = "\r\nPOST /?a=b HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n";
        $server = $this->serve(self::ROUTES);
        foreach ([1, 2, 7] as $size) {
            $socket = $server->connect();
            foreach (str_split($request, $size) as $piece) {
                fwrite($socket, $piece);
                usleep(200);
            }

            self::assertSame('[POST 1.1 a=b abc {"x":["y"]}]', self::bodyOf(ServerProcess::readAll($socket)));
        }
    }

    public function testClientsOfHttp10AreServedAsTheyUnderstand(): void
    {
        $response = self::server()->exchangeBeforeIdle("GET / HTTP/1.0\r\n\r\n");
        self::assertMatchesRegularExpression('/^HTTP\/1\.0 200 /', $response);
        self::assertSame('[GET 1.0   []]', self::bodyOf($response));

        $kept = self::server()->exchangeBeforeIdle("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /?2 HTTP/1.0\r\n\r\n");
        self::assertSame(2, substr_count($kept, 'HTTP/1.0 200'));
        self::assertStringContainsStringIgnoringCase("connection: keep-alive\r\n", $kept);

        $stream = self::server()->exchangeBeforeIdle("GET /pieces HTTP/1.0\r\n\r\n");
        self::assertStringNotContainsString('chunked', $stream);
        self::assertSame('one,two', self::bodyOf($stream));
    }

    /** @dataProvider targets */
    #[DataProvider('targets')]
    public function testTargetsOfEveryFormAreRead(int $status, string $line): void
    {
        self::assertStatus($status, self::server()->exchangeBeforeIdle("$line HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
    }

    /** @return iterable<string, array{int, string}> */
    public static function targets(): iterable
    {
        yield 'absolute' => [200, 'GET http://example.org/?x'];
        yield 'only a query' => [200, 'GET /?'];
        yield 'of the server' => [204, 'OPTIONS *'];
        yield 'of a tunnel' => [404, 'CONNECT example.org:443'];
        yield 'an unknown method' => [405, 'FROBNICATE /'];
        yield 'a method in lower case' => [405, 'get /'];
        yield 'nothing' => [400, 'GET '];
        yield 'with a user' => [400, 'GET http://good.example@evil.example/'];
        yield 'without a slash' => [400, 'GET index.html'];
        yield 'with a space' => [400, 'GET /a b'];
        yield 'with a zero byte' => [400, "GET /a\0b"];
        yield 'with a control character' => [400, "GET /a\x01b"];
        yield 'over the limit of the header' => [431, 'GET /' . str_repeat('a', 20_000)];
        yield 'a method that is no token' => [400, 'GE(T /'];
    }

    /** @dataProvider lines */
    #[DataProvider('lines')]
    public function testLinesEndAsTheStandardSays(int $status, string $bytes): void
    {
        $response = self::server()->exchangeBeforeIdle($bytes);

        self::assertStatus($status, $response);
        self::assertSame(1, substr_count($response, 'HTTP/1.1 '), $response);
    }

    /** @return iterable<string, array{int, string}> */
    public static function lines(): iterable
    {
        $chunked = "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n";
        yield 'bare line feeds in the header (§2.2 allows them)' => [200, "GET / HTTP/1.1\nHost: a\nConnection: close\n\n"];
        yield 'a bare line feed in a chunk size' => [400, $chunked . "1\na\r\n0\r\n\r\n"];
        yield 'a bare line feed after a chunk' => [400, $chunked . "1\r\na\n0\r\n\r\n"];
        yield 'a bare line feed in an extension' => [400, $chunked . "1;a\na\r\n0\r\n\r\n"];
        yield 'a bare carriage return in a field' => [400, "GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n"];
        yield 'a bare carriage return in the first line' => [400, "GET / HTTP/1.1\rHost: a\r\n\r\n"];
        yield 'a folded line' => [400, "GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n\tb\r\n\r\n"];
        yield 'a first field that is folded' => [400, "GET / HTTP/1.1\r\n Host: a\r\n\r\n"];
        yield 'an extension beyond reason' => [400, $chunked . '1;' . str_repeat('x', 40_000) . "\r\na\r\n0\r\n\r\n"];
        yield 'trailers beyond the limit' => [400, $chunked . "1\r\na\r\n0\r\n" . str_repeat("x: y\r\n", 5_000) . "\r\n"];
        yield 'a chunk size with a sign' => [400, $chunked . "+1\r\na\r\n0\r\n\r\n"];
        yield 'a chunk size with 0x' => [400, $chunked . "0x1\r\na\r\n0\r\n\r\n"];
        yield 'a chunk without a size' => [400, $chunked . "\r\na\r\n0\r\n\r\n"];
        yield 'a negative chunk size' => [400, $chunked . "-1\r\na\r\n0\r\n\r\n"];
    }

    /** @dataProvider smuggled */
    #[DataProvider('smuggled')]
    public function testTwoServersCannotReadTwoDifferentRequests(string $fields): void
    {
        $hidden = "GET /?hidden HTTP/1.1\r\nHost: a\r\n\r\n";
        $response = self::server()->exchangeBeforeIdle("POST / HTTP/1.1\r\nHost: a\r\n$fields\r\n0\r\n\r\n$hidden");

        self::assertStringNotContainsString('hidden', $response);
        self::assertLessThanOrEqual(1, substr_count($response, 'HTTP/1.1 '));
    }

    /** @return iterable<string, array{string}> */
    public static function smuggled(): iterable
    {
        yield 'a length and a coding' => ["Content-Length: 4\r\nTransfer-Encoding: chunked\r\n"];
        yield 'a coding and a length' => ["Transfer-Encoding: chunked\r\nContent-Length: 4\r\n"];
        yield 'a coding with a space before the colon' => ["Content-Length: 44\r\nTransfer-Encoding : chunked\r\n"];
        yield 'a coding after a vertical tab' => ["Content-Length: 44\r\nTransfer-Encoding:\x0bchunked\r\n"];
        yield 'a coding in a folded line' => ["Content-Length: 44\r\nTransfer-Encoding:\r\n chunked\r\n"];
        yield 'a coding in quotes' => ["Content-Length: 44\r\nTransfer-Encoding: \"chunked\"\r\n"];
        yield 'a coding twice' => ["Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\nContent-Length: 44\r\n"];
        yield 'identity' => ["Content-Length: 44\r\nTransfer-Encoding: identity\r\n"];
        yield 'two lengths' => ["Content-Length: 5\r\nContent-Length: 44\r\n"];
        yield 'a length in hexadecimal' => ["Content-Length: 0x5\r\n"];
        yield 'a negative length' => ["Content-Length: -5\r\n"];
        yield 'a length beyond 64 bits' => ["Content-Length: 18446744073709551621\r\n"];
        yield 'a length with a comma' => ["Content-Length: 5,44\r\n"];
        yield 'a field name with a zero byte' => ["Content-Length\0: 5\r\n"];
        yield 'an empty field name' => [": 5\r\nContent-Length: 5\r\nContent-Length: 44\r\n"];
    }

    /** @dataProvider framed */
    #[DataProvider('framed')]
    public function testWhereAnAnswerEndsIsNotForItsHandlerToSay(string $expected, string $request): void
    {
        $response = self::server()->exchangeBeforeIdle("$request HTTP/1.1\r\nHost: a\r\n\r\nGET /nothing HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");

        self::assertStringNotContainsStringIgnoringCase('transfer-encoding', $response);
        self::assertSame($expected, preg_replace('/date: .*\r\n/', '', strstr($response, 'HTTP/1.1 404', true) ?: $response));
    }

    /** @return iterable<string, array{string, string}> */
    public static function framed(): iterable
    {
        yield 'a length that is too small' => ["HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n12345", 'GET /framed?content-length=3'];
        yield 'a length that is too large' => ["HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n12345", 'GET /framed?content-length=30'];
        yield 'a length of something else' => ["HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n", 'HEAD /framed?content-length=3'];
        yield 'a coding' => ["HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n12345", 'GET /framed?transfer-encoding=chunked'];
        yield 'another coding' => ["HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n12345", 'GET /framed?transfer-encoding=gzip'];
        yield 'a coding and a length' => ["HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n12345", 'GET /framed?transfer-encoding=chunked&content-length=5'];
        yield 'a length without a body' => ["HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", 'GET /framed?body=&content-length=7'];
        yield 'that of the body a client did not ask for' => ["HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n", 'HEAD /framed?body=&content-length=7'];
        yield 'contents of an answer that has none' => ["HTTP/1.1 205 Reset Content\r\ncontent-length: 0\r\n\r\n", 'GET /framed?status=205'];
        yield 'no contents' => ["HTTP/1.1 204 No Content\r\n\r\n", 'GET /framed?status=204&content-length=5'];
        yield 'what has not changed' => ["HTTP/1.1 304 Not Modified\r\n\r\n", 'GET /framed?status=304&content-length=5'];
    }

    public function testAfterAnAnswerWithoutItsBodyTheRestIsNoRequest(): void
    {
        $response = self::server()->exchangeBeforeIdle("POST /ignores HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n");

        self::assertSame(1, substr_count($response, 'HTTP/1.1 '), $response);
    }
}
