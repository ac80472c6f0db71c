<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Tests\Timing;

/** What no handler sees is counted by reason, and logged with its reason and peer. */
final class RefusalTest extends HttpTestCase
{
    private const ROUTES = '$routes->get("/", static fn(Request $r) => Response::text($r->host() . " " . $r->header("host") . " " . implode(",", $r->headers()["host"])))->post("/", static fn(Request $r) => Response::text($r->body()));';

    /** A handler that keeps its place until a gate opens, though its client or its deadline has cancelled it. */
    private const WAITS = self::ROUTES . <<<'PHP'
        $app->metrics("127.0.0.1:0");
        $routes->get("/wait", static function () {
            fwrite(STDERR, "waits\n");
            return Weft\shield(static function () { gate("wait"); return Response::text("waited"); });
        });
        $routes->get("/events", static fn() => Response::events(static function (EventWriter $out) { $out->send("first"); delay(600); }));
        PHP;

    /** @dataProvider refused */
    #[DataProvider('refused')]
    public function testARefusalIsLoggedWithItsReasonAndPeer(string $reason, int $status, string $request, string $limits = ''): void
    {
        $server = $this->serve(self::ROUTES . '$app->metrics("127.0.0.1:0");', ", limits: new Limits($limits)");

        self::assertStatus($status, $server->exchange($request));

        self::assertRefused($server, $reason);
    }

    /** @return iterable<string, array{0: string, 1: int, 2: string, 3?: string}> */
    public static function refused(): iterable
    {
        yield 'no HTTP' => ['protocol', 400, "hello\r\n\r\n"];
        yield 'no Host' => ['bad_request', 400, "GET / HTTP/1.1\r\n\r\n"];
        yield 'another expectation' => ['bad_request', 417, "GET / HTTP/1.1\r\nHost: a\r\nExpect: much\r\n\r\n"];
        yield 'a head of 20 KB' => ['header_too_large', 431, "GET / HTTP/1.1\r\nHost: a\r\nX: " . str_repeat('x', 20_000) . "\r\n\r\n"];
        yield 'half a head' => ['header_timeout', 408, "GET / HTTP/1.1\r\nHost", 'header: new HeaderLimits(timeout: 0.25)'];
        yield 'a large body' => ['body_too_large', 413, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n", 'body: new BodyLimits(bytes: 8)'];
        yield 'half a body' => ['body_timeout', 408, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nx", 'body: new BodyLimits(timeout: 0.25)'];
    }

    /** @dataProvider requests */
    #[DataProvider('requests')]
    public function testARequestBeyondTheQueueIsLoggedAndCounted(string $request): void
    {
        $server = $this->serve(self::WAITS, ', limits: new Limits(inFlight: 1, queue: 1, clientShare: 1.0)');
        $running = $this->running($server);
        $others = [$server->connect(), $server->connect()];
        foreach ($others as $other) {
            fwrite($other, $request);
        }

        // The other one waits in the queue.
        [$ready, $none] = [$others, null];
        self::assertSame(1, stream_select($ready, $none, $none, (int) Timing::DEADLINE, 0));
        $refused = (int) array_key_first($ready);
        self::assertStatus(503, ServerProcess::readUntil($others[$refused], "\r\n\r\n"));

        self::assertRefused($server, 'overload', 'the server has 1 requests waiting, which is its limit');
        $server->open('wait');
        self::assertStatus(200, ServerProcess::readUntil($others[1 - $refused], "\r\n\r\n"));
        self::assertStatus(200, ServerProcess::readAll($running));
    }

    /** @return iterable<string, array{string}> */
    public static function requests(): iterable
    {
        yield 'a plain one' => ["GET / HTTP/1.1\r\nHost: a\r\n\r\n"];
        yield 'one with a body' => ["POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx"];
    }

    public function testARequestWhoseDeadlinePassesInTheQueueIsLoggedAndCounted(): void
    {
        $server = $this->serve(self::WAITS, ', limits: new Limits(inFlight: 1, clientShare: 1.0, deadline: 1.0)');
        $running = $this->running($server);

        self::assertStatus(503, $server->get('/'));

        self::assertRefused($server, 'deadline', 'the deadline has passed');
        $server->open('wait');
        self::assertStatus(503, ServerProcess::readAll($running));
    }

    public function testALongLivedRequestBeyondTheLimitIsLoggedAndCounted(): void
    {
        $server = $this->serve(self::WAITS, ', limits: new Limits(longLived: new LongLivedLimits(total: 1))');
        $open = $server->connect();
        fwrite($open, "GET /events HTTP/1.1\r\nHost: a\r\n\r\n");
        ServerProcess::readUntil($open, 'data: first');

        self::assertStatus(503, $server->get('/events'));

        self::assertRefused($server, 'long_lived', 'the server has 1 event streams and WebSockets open, which is its limit');
    }

    public function testAConnectionBeyondTheShareOfItsClientIsLoggedAndCounted(): void
    {
        $server = $this->serve(self::WAITS, ', limits: new Limits(connections: 2)');
        $open = $server->connect();

        self::assertSame('', ServerProcess::readAll($server->connect()));

        self::assertRefused($server, 'client_connections', 'the client address has 1 connections open, which is its limit');
        fclose($open);
    }

    /** @dataProvider halfBodies */
    #[DataProvider('halfBodies')]
    public function testABodyThatItsClientBreaksOffIsLoggedAndCounted(string $request, \Closure $breakOff): void
    {
        $server = $this->serve(self::WAITS);
        $socket = $server->connect();
        fwrite($socket, $request);

        $breakOff($socket);

        self::assertRefused($server, 'body_incomplete', 'the request body ended before it was complete: ');
    }

    /** @return iterable<string, array{string, \Closure(resource): void}> */
    public static function halfBodies(): iterable
    {
        $http1 = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nx";
        // 28 is the name "content-length" of RFC 7541 appendix A.
        $http2 = Http2Wire::PREFACE . Http2Wire::frame(Http2Wire::HEADERS, Http2Wire::END_HEADERS, 1, Http2Wire::POST . "\x0f\x0d\x019")
            . Http2Wire::frame(Http2Wire::DATA, 0, 1, 'x') . Http2Wire::frame(Http2Wire::PING, 0, 0, 'arrived?');
        yield 'a connection that is closed' => [$http1, static function ($socket): void {
            fclose($socket);
        }];
        yield 'a connection that is closed on one side' => [$http1, static function ($socket): void {
            stream_socket_shutdown($socket, STREAM_SHUT_WR);
            self::assertStatus(400, ServerProcess::readAll($socket));
        }];
        // Closing with frames of the server unread discards a request that has not arrived.
        yield 'a connection of HTTP/2 that is closed' => [$http2, static function ($socket): void {
            ServerProcess::readUntil($socket, 'arrived?');
            fclose($socket);
        }];
        yield 'a stream of HTTP/2 that is reset' => [$http2, static function ($socket): void {
            ServerProcess::readUntil($socket, 'arrived?');
            fwrite($socket, Http2Wire::frame(Http2Wire::RST_STREAM, 0, 1, pack('N', 8)));
        }];
    }

    public function testTheMetricHasEachReasonBeforeTheFirstRefusal(): void
    {
        $server = $this->serve(self::ROUTES . '$app->metrics("127.0.0.1:0");');

        preg_match_all('/^weft_http_refused_total\{reason="(\w+)"\} 0$/m', self::metrics($server), $series);

        self::assertEqualsCanonicalizing([
            'accept', 'bad_request', 'body_incomplete', 'body_timeout', 'body_too_large', 'client_connections', 'deadline', 'flood', 'header_timeout',
            'header_too_large', 'long_lived', 'overload', 'protocol', 'tls',
        ], $series[1]);
    }

    public function testRefusalsAreAddedUpInTheMetrics(): void
    {
        $server = $this->serve(self::ROUTES . '$app->metrics("127.0.0.1:0");');
        for ($count = 0; $count < 3; $count++) {
            self::assertStatus(400, $server->exchange("GET / HTTP/1.1\r\nConnection: close\r\n\r\n"));
        }
        self::assertStringContainsString('weft_http_refused_total{reason="bad_request"} 3', self::metrics($server));
    }

    public function testAHundredRefusalsAreOneLineInTenSeconds(): void
    {
        $server = $this->serve(self::ROUTES);
        $from = microtime(true);
        for ($count = 0; $count < 100; $count++) {
            self::assertStatus(400, $server->exchange("GET / HTTP/1.1\r\nConnection: close\r\n\r\n"));
        }

        self::assertTrue($server->awaitLog('bad_request'));
        // One at the beginning, one at the end, and one for every ten seconds that a busy machine takes.
        self::assertLessThanOrEqual(2 + (int) ((microtime(true) - $from) / 10.0), substr_count($server->log(), 'bad_request'));
    }

    public function testAFailedTlsHandshakeIsLoggedAndCounted(): void
    {
        $certificates = new Certificates();
        $certificates->issue('a', 'a.test');
        $server = $this->serve(self::ROUTES . '$app->metrics("127.0.0.1:0");', ", tls: new Tls({$certificates->php('a')})");

        $server->exchange("GET / HTTP/1.1\r\nHost: a\r\n\r\n");

        self::assertTrue($server->awaitLog('× tls, last from 127.0.0.1:'));
        self::assertStringContainsString('weft_http_refused_total{reason="tls"} 1', self::metrics($server));
        $certificates->remove();
    }

    public function testAServerWithoutDescriptorsLogsAndCountsItAndGoesOn(): void
    {
        $server = $this->serve(self::ROUTES . '$app->metrics("127.0.0.1:0");');
        $open = $this->accepted($server);
        self::limit($server->pid(), 3);
        $waiting = $server->connect();
        fwrite($waiting, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");

        self::assertTrue($server->awaitLog('× accept'), $server->log());
        self::assertStringContainsString('Too many open files', $server->log());
        self::limit($server->pid(), 1_024);
        self::assertStatus(200, ServerProcess::readAll($waiting));
        // The server tries again from time to time, so the count depends on how long it had no descriptor.
        self::assertMatchesRegularExpression('~^weft_http_refused_total\{reason="accept"\} [1-9]~m', self::metrics($server));
        fclose($open);
    }

    /** @dataProvider firstRequests */
    #[DataProvider('firstRequests')]
    public function testAServerWithoutDescriptorsServesAFirstRequestOfAnyKind(int $status, string $request, string $logged = ''): void
    {
        $server = $this->serve(<<<'PHP'
            $routes->get("/text", static fn() => Response::text("text")->withCookie(new Cookie("a", "b")));
            $routes->get("/json", static fn(Request $r) => Response::json([$r->cookies(), $r->queryParameters(), $r->headers(), $r->host()]));
            $routes->post("/form", static fn(Request $r) => Response::json($r->form()));
            $routes->post("/body", static fn(Request $r) => Response::text($r->body()));
            $routes->get("/fails", static fn() => throw new LogicException("broken"));
            $routes->get("/wrong", static fn() => "no response");
            $routes->get("/bad", static fn() => throw new BadRequestException("bad"));
            $routes->get("/late", static fn() => delay(60));
            $routes->get("/prints", static function () { echo "printed"; return Response::text("text"); });
            $routes->get("/child", static fn() => Response::text((string) async(static fn() => delay(0.001))->await()));
            $routes->get("/stream", static fn() => Response::stream(static function (BodyWriter $out) { $out->write("a"); delay(0.001); }));
            $routes->get("/events", static fn() => Response::events(static function () { yield new ServerSentEvent("a"); }));
            $routes->websocket("/socket", static fn(WebSocket $socket) => $socket->send("a"));
            PHP, ', limits: new Limits(deadline: 0.5)');
        $socket = $this->accepted($server);
        self::limit($server->pid(), 3);

        fwrite($socket, $request);

        self::assertStatus($status, ServerProcess::readUntil($socket, "\r\n\r\n"));
        self::assertTrue($server->awaitLog($logged));
        self::limit($server->pid(), 1_024);
        self::assertStatus(200, $server->get('/text'));
        self::assertStringNotContainsString('Fatal', $server->log());
    }

    /** @return iterable<string, array{0: int, 1: string, 2?: string}> */
    public static function firstRequests(): iterable
    {
        $get = static fn(string $path, string $fields = ''): string => "GET $path HTTP/1.1\r\nHost: a\r\n$fields\r\n";
        $post = static fn(string $path, string $body): string => "POST $path HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: " . \strlen($body) . "\r\n\r\n$body";
        yield 'text and a cookie' => [200, $get('/text')];
        yield 'JSON of what is in the request' => [200, $get('/json?a=b', "Cookie: a=b\r\n")];
        yield 'a form' => [200, $post('/form', 'a=b')];
        yield 'a body' => [200, $post('/body', 'a=b')];
        yield 'a large body' => [200, $post('/body', str_repeat('a', 200_000))];
        yield 'a page that is not there' => [404, $get('/nothing')];
        yield 'another method' => [405, $post('/text', '')];
        yield 'a failure' => [500, $get('/fails'), 'LogicException: broken'];
        yield 'no response' => [500, $get('/wrong'), 'returned string ('];
        yield 'an exception that is a response' => [400, $get('/bad')];
        yield 'a deadline' => [503, $get('/late'), 'is past its deadline'];
        yield 'output' => [200, $get('/prints'), 'printed'];
        yield 'a child task' => [200, $get('/child')];
        yield 'a stream' => [200, $get('/stream')];
        yield 'events' => [200, $get('/events')];
        yield 'a WebSocket' => [101, WebSocketClient::request('/socket')];
        yield 'a refusal' => [400, "GET / HTTP/1.1\r\n\r\n", 'bad_request'];
    }

    /** @dataProvider targets */
    #[DataProvider('targets')]
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

    private static function assertRefused(ServerProcess $server, string $reason, string $detail = ''): void
    {
        self::assertTrue($server->awaitLog("× $reason"), $server->log());
        $detail = $detail === '' ? '' : ": $detail";
        self::assertMatchesRegularExpression("~HTTP server refused 1 × $reason, last from 127\\.0\\.0\\.1:\\d+$detail~", $server->log());
        self::assertStringContainsString("weft_http_refused_total{reason=\"$reason\"} 1\n", self::metrics($server));
    }

    /** @return resource the connection of a request whose handler runs until the gate "wait" opens */
    private function running(ServerProcess $server)
    {
        $socket = $server->connect();
        fwrite($socket, "GET /wait HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        self::assertTrue($server->awaitLog('waits'));

        return $socket;
    }

    /** @return resource a connection that the server has accepted */
    private function accepted(ServerProcess $server)
    {
        // It serves once it answers HTTP/2, which takes no request.
        $http2 = $server->connect();
        fwrite($http2, Http2Wire::PREFACE);
        self::assertNotSame('', (string) fread($http2, 9));
        $before = $server->sockets();
        $socket = $server->connect();
        Timing::until(static fn(): bool => $server->sockets() > $before, 'the connection is accepted');

        return $socket;
    }

    private static function limit(int $process, int $descriptors): void
    {
        exec("prlimit --pid $process --nofile=$descriptors:", $output, $code);
        self::assertSame(0, $code);
    }
}
