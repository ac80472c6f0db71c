<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Tests\Timing;

final class BadInputTest extends HttpTestCase
{
    private const ROUTES = '$routes->route(["GET", "POST"], "/", static fn(Request $r) => Response::text("[" . $r->method() . $r->body() . "]"));';

    /** Seconds of `HeaderLimits::$timeout`, which the server here has shorter. */
    private const DEFAULT_HEADER_TIMEOUT = 10.0;

    private static ?ServerProcess $server = null;

    private static ?ServerProcess $idle = null;
    private static ?ServerProcess $patient = null;

    private static function server(): ServerProcess
    {
        return self::$server ??= ServerProcess::start(self::ROUTES, ', limits: new Limits(header: new HeaderLimits(timeout: 0.5), body: new BodyLimits(timeout: 0.5))');
    }

    private static function idle(): ServerProcess
    {
        return self::$idle ??= ServerProcess::start(self::ROUTES, ', limits: new Limits(keepalive: new Keepalive(idle: 1.0))');
    }

    /** For what has nothing to do with time: a busy machine may take longer to send a request than the other server waits for one. */
    private static function patient(): ServerProcess
    {
        return self::$patient ??= ServerProcess::start(self::ROUTES);
    }

    public static function tearDownAfterClass(): void
    {
        self::$server?->stop();
        self::$idle?->stop();
        self::$patient?->stop();
        self::$server = self::$idle = self::$patient = null;
    }

    /** @dataProvider malformed */
    #[DataProvider('malformed')]
    public function testMalformedInputIsRefusedAndTheConnectionClosed(int $status, string $bytes): void
    {
        // What follows could be part of an attack: it must not be answered.
        $response = self::patient()->exchange($bytes . "GET / HTTP/1.1\r\nHost: smuggled\r\n\r\n");

        self::assertStatus($status, $response);
        self::assertSame(1, preg_match_all('~HTTP/1\.[01] ~', $response), $response);
        self::assertSame('[GET]', self::bodyOf(self::patient()->get('/')));
    }

    /** @return iterable<string, array{int, string}> */
    public static function malformed(): iterable
    {
        $post = "POST / HTTP/1.1\r\nHost: a\r\n";
        $get = "GET / HTTP/1.1\r\nHost: a\r\n";
        $chunked = $post . "Transfer-Encoding: chunked\r\n\r\n";
        yield 'two lengths' => [400, $post . "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab"];
        yield 'a list of lengths' => [400, $post . "Content-Length: 1, 1\r\n\r\na"];
        yield 'a length with a sign' => [400, $post . "Content-Length: +1\r\n\r\na"];
        yield 'an unknown coding' => [400, $post . "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"];
        yield 'a coding after chunked' => [400, $post . "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"];
        yield 'two codings' => [400, $post . "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"];
        yield 'chunked in HTTP/1.0' => [400, "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"];
        yield 'a space before the colon' => [400, "GET / HTTP/1.1\r\nHost : a\r\n\r\n"];
        yield 'a folded line' => [400, $get . "X: a\r\n b\r\n\r\n"];
        yield 'a zero byte' => [400, $get . "X: a\0b\r\n\r\n"];
        yield 'no host' => [400, "GET / HTTP/1.1\r\n\r\n"];
        yield 'two hosts' => [400, $get . "Host: b\r\n\r\n"];
        yield 'two hosts in HTTP/1.0' => [400, "GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n"];
        yield 'a host with a port that is no number' => [400, "GET / HTTP/1.1\r\nHost: a:x\r\n\r\n"];
        yield 'a host with two ports' => [400, "GET / HTTP/1.1\r\nHost: a:80:81\r\n\r\n"];
        yield 'a host with a space' => [400, "GET / HTTP/1.1\r\nHost: a b\r\n\r\n"];
        yield 'a host with a path' => [400, "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"];
        yield 'a host with a user' => [400, "GET / HTTP/1.1\r\nHost: a@b\r\n\r\n"];
        yield 'a host in quotes' => [400, "GET / HTTP/1.1\r\nHost: \"a\"\r\n\r\n"];
        yield 'an unknown version' => [400, "GET / HTTP/9.9\r\nHost: a\r\n\r\n"];
        yield 'a chunk size that is no number' => [400, $chunked . "zz\r\na\r\n0\r\n\r\n"];
        yield 'a chunk size beyond 64 bits' => [400, $chunked . "fffffffffffffffff\r\na\r\n0\r\n\r\n"];
        yield 'a line feed in a chunk extension' => [400, $chunked . "1;\n\r\na\r\n0\r\n\r\n"];
        yield 'a chunk that is longer than it says' => [400, $chunked . "1\r\nab\r\n0\r\n\r\n"];
        yield 'two hundred fields' => [431, $get . str_repeat("X: a\r\n", 200) . "\r\n"];
        yield 'a field of 20,000 bytes' => [431, $get . 'X: ' . str_repeat('a', 20_000) . "\r\n\r\n"];
        yield 'an unknown expectation' => [417, $post . "Expect: the best\r\nContent-Length: 1\r\n\r\na"];
        yield 'TLS' => [400, "\x16\x03\x01\x02\x00\x01\x00"];
    }

    public function testACodingOverridesALengthAndTheConnectionIsClosed(): void
    {
        $response = self::patient()->exchange("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 40\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: smuggled\r\n\r\n");

        self::assertSame(1, substr_count($response, 'HTTP/1.1 '), $response);
    }

    /** @dataProvider halves */
    #[DataProvider('halves')]
    public function testAHeaderThatDoesNotArriveInTimeIs408AndEndsTheConnection(string $bytes): void
    {
        Timing::assertDoesNotWait(self::DEFAULT_HEADER_TIMEOUT, static function () use ($bytes): void {
            $response = self::server()->exchange($bytes);

            self::assertStringEndsWith("HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: 20\r\n\r\n408 Request Timeout\n", $response);
        });
    }

    /** @return iterable<string, array{string}> */
    public static function halves(): iterable
    {
        yield 'one letter' => ['G'];
        yield 'half a field' => ["GET / HTTP/1.1\r\nHos"];
        yield 'all but the last line' => ["GET / HTTP/1.1\r\nHost: a\r\n"];
    }

    public function testTheSecondHeaderOfAConnectionHasToArriveInTimeToo(): void
    {
        $socket = self::server()->connect();
        fwrite($socket, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        self::assertStatus(200, (string) fread($socket, 65536));

        fwrite($socket, 'GET / HT');

        self::assertStatus(408, ServerProcess::readAll($socket));
    }

    /** @dataProvider wholes */
    #[DataProvider('wholes')]
    public function testAHeaderBehindAnotherRequestHasToArriveInTimeToo(string $request, int $answers): void
    {
        Timing::assertDoesNotWait(self::DEFAULT_HEADER_TIMEOUT, static function () use ($request, $answers): void {
            $response = self::server()->exchange("{$request}GET / HT");

            self::assertSame($answers, substr_count($response, 'HTTP/1.1 200 OK'), $response);
            self::assertStringEndsWith("\r\n\r\n408 Request Timeout\n", $response);
        });
    }

    /** @dataProvider wholes */
    #[DataProvider('wholes')]
    public function testWhereNoHeaderFollowsThereIsNo408(string $request, int $answers): void
    {
        $response = self::idle()->exchangeBeforeIdle($request);

        self::assertSame($answers, substr_count($response, 'HTTP/1.1 '), $response);
        self::assertSame($answers, substr_count($response, 'HTTP/1.1 200 OK'), $response);
    }

    /** @return iterable<string, array{string, int}> */
    public static function wholes(): iterable
    {
        $get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        $post = "POST / HTTP/1.1\r\nHost: a\r\n";
        yield 'a request' => [$get, 1];
        yield 'three requests' => [$get . $get . $get, 3];
        yield 'a body' => [$post . "Content-Length: 2\r\n\r\nab", 1];
        yield 'an empty body' => [$post . "Content-Length: 0\r\n\r\n", 1];
        yield 'chunks' => [$post . "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n", 1];
        yield 'chunks and a trailer' => [$post . "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nX: y\r\n\r\n", 1];
        yield 'a body of 100,000 bytes' => [$post . "Content-Length: 100000\r\n\r\n" . str_repeat('a', 100_000), 1];
    }

    public function testAHeaderThatBeginsWhileARequestIsHandledHasItsTimeFromTheAnswerOn(): void
    {
        $server = $this->serve(
            '$routes->get("/", static function () { fwrite(STDERR, "handling"); delay(1.0); return Response::text("slow"); });',
            ', limits: new Limits(header: new HeaderLimits(timeout: 0.5), keepalive: new Keepalive(idle: 60.0))',
        );
        $socket = $server->connect();
        fwrite($socket, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        self::assertTrue($server->awaitLog('handling'));
        fwrite($socket, 'GET / HT');

        $response = ServerProcess::readAll($socket);

        self::assertStatus(200, $response);
        self::assertStringContainsString('slowHTTP/1.1 408 ', $response);
    }

    public function testNothingIsSaidInTheMiddleOfAnAnswer(): void
    {
        $length = 32 << 20;
        $server = $this->serve("\$answer = static fn() => Response::text(str_repeat('x', $length)); \$routes->get('/', \$answer); \$routes->post('/', \$answer);", ', limits: new Limits(header: new HeaderLimits(timeout: 0.5), writeTimeout: 30.0)');
        foreach (['GET', 'POST'] as $method) {
            $socket = $server->connect();
            fwrite($socket, "$method / HTTP/1.1\r\nHost: a\r\n\r\nGET / HT");
            usleep(2_000_000);

            [, $answer] = explode("\r\n\r\n", ServerProcess::readAll($socket), 2);
            $body = strspn($answer, 'x');
            if ($body < $length) {
                self::assertSame($body, strlen($answer), $method);
            } else {
                self::assertStringStartsWith('HTTP/1.1 408 ', substr($answer, $body) ?: 'HTTP/1.1 408 ', $method);
            }
        }
    }

    public function testAConnectionOnWhichNothingArrivesIsClosedWithoutAWord(): void
    {
        Timing::assertDoesNotWait(self::DEFAULT_HEADER_TIMEOUT, static fn() => self::assertSame('', self::idle()->exchange('')));
        self::assertSame(1, substr_count(self::idle()->exchangeBeforeIdle("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), 'HTTP/1.1 '), 'kept alive, then idle');
    }

    public function testAHeaderThatTricklesInGetsNoMoreTime(): void
    {
        Timing::assertDoesNotWait(self::DEFAULT_HEADER_TIMEOUT, static function (): void {
            $socket = self::server()->connect();
            for ($i = 0; $i < 1_000 && @fwrite($socket, 'G') !== false && !self::isClosed($socket); $i++) {
                usleep(50_000);
            }
        });
    }

    public function testABodyThatDoesNotArriveInTimeIs408(): void
    {
        self::assertStatus(408, self::server()->exchange("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab"));
        self::assertStatus(408, self::server()->exchange("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"));
    }

    public function testAnIdleConnectionIsClosed(): void
    {
        // By default it is kept for 75 s, which is longer than what is waited for here.
        self::assertStatus(200, self::idle()->exchangeBeforeIdle("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    }

    public function testAClientThatReadsNothingIsDisconnected(): void
    {
        $server = $this->serve('$routes->get("/", static fn() => Response::stream(static function (BodyWriter $out) { try { while (true) { $out->write(str_repeat("x", 65536)); } } finally { fprintf(STDERR, "ended"); } }));', ', limits: new Limits(writeTimeout: 0.5)');
        $socket = $server->connect();
        fwrite($socket, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");

        self::assertTrue($server->awaitLog('ended'));
    }

    public function testConnectionsBeyondTheLimitWaitForTheirTurn(): void
    {
        $server = $this->serve(self::ROUTES, ', limits: new Limits(connections: 2, clientShare: 1.0, keepalive: new Keepalive(idle: 0.5), header: new HeaderLimits(timeout: 0.5))');
        $sockets = [];
        for ($i = 0; $i < 20; $i++) {
            $sockets[] = $socket = $server->connect();
        }
        fwrite($socket, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");

        self::assertStatus(200, ServerProcess::readAll($socket));
    }

    /** @param resource $socket */
    private static function isClosed($socket): bool
    {
        stream_set_blocking($socket, false);

        return fread($socket, 1) === '' && feof($socket);
    }
}
