<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

/** One client within its limits never takes more than its share, and nothing it abandons keeps a place. */
final class FairShareTest extends HttpTestCase
{
    private const OTHER = '127.0.0.2';
    /** An event stream, a body that nobody reads, a page. */
    private const ROUTES = <<<'PHP'
        $routes->get("/events", static fn() => Response::events(static function (EventWriter $out) { $out->send("first"); delay(60); }));
        $routes->get("/big", static fn() => Response::stream(static function (BodyWriter $out) { for ($i = 0; $i < 1_000; $i++) { $out->write(str_repeat("x", 65_536)); } }));
        $routes->websocket("/socket", static function (WebSocket $socket) { foreach ($socket as $message) { } });
        $routes->post("/", static fn(Request $request) => Response::text((string) strlen($request->body())));
        $routes->get("/slow", static function () { delay(0.5); return Response::text("slow"); });
        $routes->get("/", static fn() => Response::text("hello"));
        PHP;

    public function testEventStreamsOfOneClientLeaveFibersForOthers(): void
    {
        $server = $this->withFibers(40);
        $socket = $server->connect();
        $requests = Http2Wire::PREFACE;
        for ($stream = 1; $stream < 90; $stream += 2) {
            $requests .= Http2Wire::get($stream, '/events');
        }
        fwrite($socket, $requests);
        self::assertTrue($server->awaitLog('long_lived'));

        self::assertSame('hello', self::bodyOf($server->get('/')));
        self::assertSame('hello', self::bodyOf($server->get('/', '--interface', self::OTHER)));
        $more = $server->get('/events', '--interface', self::OTHER, '--max-time', '0.5');
        self::assertStringContainsString('data: first', $more);
    }

    public function testPlacesOfEventStreamsAreFreeOnceTheirClientHasGone(): void
    {
        $server = $this->serve(self::ROUTES, ', limits: new Limits(longLived: 1, clientShare: 1.0)');
        for ($round = 0; $round < 3; $round++) {
            self::assertStringContainsString('data: first', $this->untilOk($server, '/events'));
        }
    }

    public function testEveryKindOfLongRequestFrom100ConnectionsLeavesRoomForOthers(): void
    {
        $server = $this->withFibers(200);
        $open = [];
        for ($index = 0; $index < 20; $index++) {
            $open[] = $this->hold($server, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nx");
            $open[] = $this->hold($server, Http2Wire::PREFACE . $this->streams('/events', 30));
            $open[] = $this->hold($server, Http2Wire::PREFACE . $this->streams('/big', 30));
            $open[] = $this->hold($server, WebSocketClient::request('/socket'));
            $open[] = $this->hold($server, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        }
        $server->get('/', '--interface', self::OTHER);

        $before = $server->cpu();
        for ($request = 0; $request < 10; $request++) {
            self::assertSame('hello', self::bodyOf($server->get('/', '--interface', self::OTHER)));
        }

        self::assertLessThan(10 * 0.1, $server->cpu() - $before);
        self::assertCount(100, $open);
    }

    public function testAbandonedRequestsAreNotInTheQueue(): void
    {
        $server = $this->serve(self::ROUTES, ', limits: new Limits(inFlight: 1, queue: 4, clientShare: 1.0)');
        $slow = $server->connect();
        fwrite($slow, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
        $flood = $this->hold($server, Http2Wire::PREFACE);
        for ($stream = 1; $stream < 30; $stream += 2) {
            // The answer to the ping says that the reset before it has arrived.
            fwrite($flood, Http2Wire::get($stream) . Http2Wire::frame(Http2Wire::RST_STREAM, 0, $stream, pack('N', 8)) . Http2Wire::frame(Http2Wire::PING, 0, 0, 'arrived?'));
            for ($read = ''; $read !== false && !str_contains($read, 'arrived?');) {
                $read .= fread($flood, 1_024);
            }
        }

        self::assertSame('hello', self::bodyOf($server->get('/')));
        self::assertStringNotContainsString('overload', $server->log());
    }

    public function testABodyThatIsBeingReadHasTheDeadlineAndAPlaceInTheQueue(): void
    {
        $server = $this->serve(self::ROUTES, ', limits: new Limits(queue: 2, clientShare: 0.5, deadline: 1.0)');
        $slow = $this->hold($server, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nx");
        self::assertStatus(503, $this->untilStatus($server, '/', 503));
        self::assertSame('hello', self::bodyOf($server->get('/', '--interface', self::OTHER)));

        self::assertStatus(408, ServerProcess::readAll($slow, 10.0));
        self::assertSame('hello', self::bodyOf($server->get('/')));
        self::assertTrue($server->awaitLog('body_timeout'));
    }

    public function testABodyThatArrivesTooSlowlyIsGivenUpThoughSomethingArrivesAllTheTime(): void
    {
        $server = $this->serve(self::ROUTES, ', limits: new Limits(deadline: null, bodyTimeout: 0.5, bodyRate: 1_000)');
        $socket = $server->connect();
        stream_set_blocking($socket, false);
        fwrite($socket, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n");
        $answer = '';
        for ($sent = 0; $sent < 900 && $answer === ''; $sent++) {
            @fwrite($socket, 'x');
            usleep(20_000);
            $answer = (string) fread($socket, 1_000);
        }

        self::assertStatus(408, $answer);
        self::assertTrue($server->awaitLog('less than 1000 bytes per second'));
    }

    public function testConnectionsBeyondTheShareOfAClientAreClosed(): void
    {
        $server = $this->serve(self::ROUTES, ', limits: new Limits(connections: 4)');
        $open = [$server->connect(), $server->connect(), $server->connect()];

        self::assertSame('', (string) fread($open[2], 1));
        self::assertTrue(feof($open[2]));
        self::assertSame('hello', self::bodyOf($server->get('/', '--interface', self::OTHER)));
        self::assertTrue($server->awaitLog('client_connections'));
    }

    private function withFibers(int $fibers): ServerProcess
    {
        $program = (string) tempnam(sys_get_temp_dir(), 'weft');
        $autoload = var_export(\dirname(__DIR__, 2) . '/autoload.php', true);
        $routes = self::ROUTES;
        file_put_contents($program, <<<PHP
            <?php
            require $autoload;
            use Weft\Http\{BodyWriter, EventWriter, Request, Response, Router, Server, WebSocket};
            use function Weft\{async, delay, run, signal};
            run(static function (): void {
                \$routes = Router::new();
                $routes
                \$server = new Server(\$routes);
                echo \$server->listen('127.0.0.1:0'), "\n";
                async(\$server->run(...));
                signal(SIGTERM);
                \$server->stop(0.2);
            }, maxFibers: $fibers);
            PHP);

        return $this->keep(ServerProcess::launch([$program], $program));
    }

    /** @return resource a connection on which something was sent */
    private function hold(ServerProcess $server, string $bytes)
    {
        $socket = $server->connect();
        fwrite($socket, $bytes);

        return $socket;
    }

    private function streams(string $path, int $count): string
    {
        $requests = '';
        for ($stream = 1; $stream < 2 * $count; $stream += 2) {
            $requests .= Http2Wire::get($stream, $path);
        }

        return $requests;
    }

    private function untilOk(ServerProcess $server, string $path): string
    {
        return $this->untilStatus($server, $path, 200);
    }

    /** The server hears a little later what a client has done. */
    private function untilStatus(ServerProcess $server, string $path, int $status): string
    {
        $deadline = microtime(true) + 10.0;
        do {
            $answer = $server->get($path, '--max-time', '0.3');
        } while (!str_starts_with($answer, "HTTP/1.1 $status") && microtime(true) < $deadline);

        return $answer;
    }
}
