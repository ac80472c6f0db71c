<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

/** What no handler sees is counted by cause, and logged with its cause and peer. */
final class RefusalTest extends HttpTestCase
{
    private const ROUTES = '$routes->get("/", static fn(Request $r) => Response::text($r->host() . " " . $r->header("host") . " " . implode(",", $r->headers()["host"])))->post("/", static fn(Request $r) => Response::text($r->body()));';

    /** @dataProvider refused */
    public function testARefusalIsLoggedWithItsCauseAndPeer(string $cause, int $status, string $request, string $limits = ''): void
    {
        $server = $this->serve(self::ROUTES, ", limits: new Limits($limits)");

        self::assertStatus($status, $server->exchange($request, 10.0));

        self::assertTrue($server->awaitLog("× $cause"));
        self::assertMatchesRegularExpression("~HTTP server refused 1 × $cause, last from 127\\.0\\.0\\.1:\\d+~", $server->log());
    }

    /** @return iterable<string, array{0: string, 1: int, 2: string, 3?: string}> */
    public static function refused(): iterable
    {
        yield 'no HTTP' => ['protocol', 400, "hello\r\n\r\n"];
        yield 'no Host' => ['bad_request', 400, "GET / HTTP/1.1\r\n\r\n"];
        yield 'another expectation' => ['bad_request', 417, "GET / HTTP/1.1\r\nHost: a\r\nExpect: much\r\n\r\n"];
        yield 'a head of 20 KB' => ['header_too_large', 431, "GET / HTTP/1.1\r\nHost: a\r\nX: " . str_repeat('x', 20_000) . "\r\n\r\n"];
        yield 'half a head' => ['header_timeout', 408, "GET / HTTP/1.1\r\nHost", 'headerTimeout: 0.25'];
        yield 'a large body' => ['body_too_large', 413, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n", 'bodyBytes: 8'];
        yield 'half a body' => ['body_timeout', 408, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nx", 'bodyTimeout: 0.25'];
    }

    public function testEveryRefusalIsInTheMetrics(): void
    {
        $server = $this->serve(self::ROUTES . '$app->metrics("127.0.0.1:0");');
        for ($count = 0; $count < 3; $count++) {
            self::assertStatus(400, $server->exchange("GET / HTTP/1.1\r\nConnection: close\r\n\r\n"));
        }
        self::assertTrue($server->awaitLog('/metrics'));
        preg_match('~http://(\S+)/metrics~', $server->log(), $endpoint);

        self::assertStringContainsString('weft_http_refused_total{cause="bad_request"} 3', (string) file_get_contents("http://$endpoint[1]/metrics"));
    }

    public function testAHundredRefusalsAreOneLineOrTwo(): void
    {
        $server = $this->serve(self::ROUTES);
        for ($count = 0; $count < 100; $count++) {
            self::assertStatus(400, $server->exchange("GET / HTTP/1.1\r\nConnection: close\r\n\r\n"));
        }

        self::assertTrue($server->awaitLog('bad_request'));
        self::assertLessThanOrEqual(2, substr_count($server->log(), 'bad_request'));
    }

    public function testAFailedTlsHandshakeIsLogged(): void
    {
        $certificates = new Certificates();
        $certificates->issue('a', 'a.test');
        $server = $this->serve(self::ROUTES, ", tls: new Tls({$certificates->php('a')})");

        $server->exchange("GET / HTTP/1.1\r\nHost: a\r\n\r\n");

        self::assertTrue($server->awaitLog('× tls, last from 127.0.0.1:'));
        $certificates->remove();
    }

    public function testAServerWithoutDescriptorsSaysSoAndGoesOn(): void
    {
        $server = $this->serve(self::ROUTES);
        // A server that has served has loaded its classes: without a descriptor PHP opens no file.
        self::assertStatus(200, $server->exchange("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
        self::limit($server->pid(), 3);
        $waiting = $server->connect();
        fwrite($waiting, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");

        self::assertTrue($server->awaitLog('× accept'), $server->log());
        self::assertStringContainsString('Too many open files', $server->log());
        self::limit($server->pid(), 1_024);
        self::assertStatus(200, ServerProcess::readAll($waiting));
    }

    /** @dataProvider targets */
    public function testARequestHasOneHost(string $expected, string $request): void
    {
        $server = $this->serve(self::ROUTES);

        self::assertSame($expected, self::bodyOf($server->exchange("$request\r\nConnection: close\r\n\r\n")));
    }

    /** @return iterable<string, array{string, string}> */
    public static function targets(): iterable
    {
        yield 'a path' => ['public public public', "GET / HTTP/1.1\r\nHost: public"];
        yield 'the absolute form' => ['internal internal internal', "GET http://internal/ HTTP/1.1\r\nHost: public"];
        yield 'the absolute form of HTTP/1.0' => ['internal internal internal', 'GET http://internal/ HTTP/1.0'];
    }

    public function testOverHttp2TheAuthorityIsTheHostAndAnotherOneIsRefused(): void
    {
        $server = $this->serve(self::ROUTES);
        $host = static fn(string $name): string => "\x00\x04host" . \chr(\strlen($name)) . $name;
        $socket = $server->connect();
        $headers = Http2Wire::END_STREAM | Http2Wire::END_HEADERS;
        fwrite($socket, Http2Wire::PREFACE . Http2Wire::frame(Http2Wire::HEADERS, $headers, 1, Http2Wire::GET . $host('b')) . Http2Wire::frame(Http2Wire::HEADERS, $headers, 3, Http2Wire::GET . $host('A')));

        stream_set_timeout($socket, 10);
        for ($read = '', $chunk = ''; $chunk !== false && !feof($socket) && !str_contains($read, 'a a a'); $read .= $chunk) {
            $chunk = fread($socket, 1_024);
        }
        $answers = [];
        foreach (Http2Wire::parse($read) as [$type, $stream, $payload]) {
            if ($type === Http2Wire::HEADERS || $type === Http2Wire::DATA && $stream === 3) {
                $answers[$stream][] = $payload;
            }
        }

        // RFC 7541 appendix A: 12 is ":status: 400", 8 is ":status: 200".
        self::assertSame("\x8c", $answers[1][0][0]);
        self::assertSame("\x88", $answers[3][0][0]);
        self::assertSame('a a a', $answers[3][1]);
        self::assertSame($server->address . ' ' . $server->address . ' ' . $server->address, self::bodyOf($server->get('/', '--http2-prior-knowledge')));
    }

    private static function limit(int $process, int $descriptors): void
    {
        exec("prlimit --pid $process --nofile=$descriptors:", $output, $code);
        self::assertSame(0, $code);
    }
}
