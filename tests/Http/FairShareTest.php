<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

use Weft\Tests\Grpc\Wire;
use Weft\Tests\Timing;

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
        $routes->get("/slow", static function () { fwrite(STDERR, "slow begins\n"); gate("slow"); return Response::text("slow"); });
        $routes->get("/children", static function () { fwrite(STDERR, "children begin\n"); Weft\all(array_fill(0, 60, static fn() => gate("children"))); return Response::text("all"); });
        $routes->get("/page", static function () { ob_start(); echo "page"; return Response::text((string) ob_get_clean()); });
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
        $other = $server->connect(self::OTHER);
        fwrite($other, "GET /events HTTP/1.1\r\nHost: a\r\n\r\n");
        self::assertStringContainsString('data: first', ServerProcess::readUntil($other, 'data: first'));
    }

    public function testPlacesOfEventStreamsAreFreeOnceTheirClientHasGone(): void
    {
        $server = $this->serve(self::ROUTES, ', limits: new Limits(longLived: new LongLivedLimits(total: 1), clientShare: 1.0)');
        for ($round = 0; $round < 3; $round++) {
            // The server hears a little later that a client has gone.
            Timing::until(static function () use ($server, &$socket): bool {
                $socket = $server->connect();
                fwrite($socket, "GET /events HTTP/1.1\r\nHost: a\r\n\r\n");

                $answer = ServerProcess::readUntil($socket, "\r\n\r\n");
                $isOpen = str_starts_with($answer, 'HTTP/1.1 200');
                $isOpen && !str_contains($answer, 'data: first') && ServerProcess::readUntil($socket, 'data: first');

                return $isOpen;
            }, 'a place for another event stream');
            fclose($socket);
        }
    }

    public function testUnaryCallsOfOneClientLeavePlacesAndRoomInTheQueueToOthers(): void
    {
        $server = $this->withFibers(40, ', new Weft\Grpc\ServerOptions(limits: new Weft\Grpc\Limits(inFlight: 2, queue: 4))');
        $socket = $server->connect();
        stream_set_timeout($socket, 30);
        // Their requests never end.
        $calls = '';
        for ($stream = 1; $stream < 20; $stream += 2) {
            $calls .= Wire::call($stream, '/api.Users/Get') . Wire::frame(Wire::DATA, 0, $stream, "\0\0\0");
        }
        fwrite($socket, Http2Wire::PREFACE);
        $this->exchangePing($socket, $calls);

        self::assertTrue($server->awaitLog('the client address has 2 calls waiting'));
        $this->callUnary($server);
    }

    public function testEveryKindOfLongRequestFrom105ConnectionsLeavesRoomForOthers(): void
    {
        $server = $this->withFibers(200, ', new Weft\Grpc\ServerOptions(limits: new Weft\Grpc\Limits(clientShare: 1.0))');
        $open = [];
        for ($index = 0; $index < 15; $index++) {
            $open[] = $this->hold($server, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nx");
            $open[] = $this->hold($server, Http2Wire::PREFACE . $this->streams('/events', 30));
            $open[] = $this->hold($server, Http2Wire::PREFACE . $this->streams('/big', 30));
            $open[] = $this->hold($server, WebSocketClient::request('/socket'));
            $open[] = $this->hold($server, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
            $open[] = $this->hold($server, Http2Wire::PREFACE . $this->calls('/grpc.health.v1.Health/Watch', 30));
            $open[] = $this->hold($server, Http2Wire::PREFACE . $this->calls('/api.Users/List', 30));
        }
        // A tenth of all fibers: what both servers want is fitted to them.
        self::assertTrue($server->awaitLog('the server has 20 health watches open'));
        $this->callUnary($server);

        $before = $server->cpu();
        for ($request = 0; $request < 10; $request++) {
            self::assertSame('hello', self::bodyOf($server->get('/', '--interface', self::OTHER)));
            $this->callUnary($server);
        }

        self::assertLessThan(20 * 0.1, $server->cpu() - $before);
        self::assertCount(105, $open);
    }

    public function testCallsThatAreResetKeepTheirFibersWhileTheirHandlersGoOn(): void
    {
        $server = $this->withFibers(40);
        $socket = $server->connect();
        fwrite($socket, Http2Wire::PREFACE);
        for ($round = 0; $round < 10; $round++) {
            $calls = '';
            for ($stream = 20 * $round + 1; $stream < 20 * ($round + 1); $stream += 2) {
                $calls .= Wire::call($stream, '/api.Users/Lookup') . Wire::frame(Wire::DATA, 0, $stream, "\0\0\0\0\0");
            }
            // The answer to a ping says that what was sent before it has arrived.
            $this->exchangePing($socket, $calls);
            for ($stream = 20 * $round + 1, $resets = ''; $stream < 20 * ($round + 1); $stream += 2) {
                $resets .= Http2Wire::frame(Http2Wire::RST_STREAM, 0, $stream, pack('N', 8));
            }
            $this->exchangePing($socket, $resets);
        }

        self::assertSame('hello', self::bodyOf($server->get('/', '--interface', self::OTHER)));
        $this->callUnary($server);
        self::assertLessThanOrEqual(16, substr_count($server->log(), 'lookup begins'));
    }

    public function testAbandonedRequestsAreNotInTheQueue(): void
    {
        $server = $this->serve(self::ROUTES, ', limits: new Limits(inFlight: 1, queue: 4, clientShare: 1.0)');
        $slow = $server->connect();
        fwrite($slow, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
        self::assertTrue($server->awaitLog('slow begins'));
        $flood = $this->hold($server, Http2Wire::PREFACE);
        for ($stream = 1; $stream < 30; $stream += 2) {
            // The answer to the ping says that the reset before it has arrived.
            $this->exchangePing($flood, Http2Wire::get($stream) . Http2Wire::frame(Http2Wire::RST_STREAM, 0, $stream, pack('N', 8)));
        }
        $server->open('slow');

        self::assertSame('hello', self::bodyOf($server->get('/')));
        self::assertStringNotContainsString('overload', $server->log());
    }

    public function testRequestsThatAreAbandonedWhileTheyWaitForAFiberTakeNoOutputBufferAway(): void
    {
        $server = $this->withFibers(40);
        $children = $server->connect();
        fwrite($children, "GET /children HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        self::assertTrue($server->awaitLog('children begin'));
        $abandoned = $this->hold($server, Http2Wire::PREFACE);
        foreach ([1, 3] as $stream) {
            $this->exchangePing($abandoned, Http2Wire::get($stream));
            $this->exchangePing($abandoned, Http2Wire::frame(Http2Wire::RST_STREAM, 0, $stream, pack('N', 8)));
        }
        $server->open('children');
        self::assertStringEndsWith('all', ServerProcess::readAll($children));

        self::assertSame(['page', 'page'], [self::bodyOf($server->get('/page')), self::bodyOf($server->get('/page'))]);
        self::assertStringNotContainsString('Discarded', $server->log());
    }

    public function testABodyThatIsBeingReadHasTheDeadlineAndAPlaceInTheQueue(): void
    {
        $server = $this->serve(self::ROUTES, ', limits: new Limits(queue: 2, clientShare: 0.5, deadline: 1.0)');
        $slow = null;
        Timing::until(function () use ($server, &$slow): bool {
            // One that is past its deadline already leaves its place in the queue.
            $slow = $slow === null || self::hasAnswer($slow) ? $this->hold($server, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nx") : $slow;

            return str_starts_with($server->get('/'), 'HTTP/1.1 503');
        }, 'the queue is full');
        self::assertSame('hello', self::bodyOf($server->get('/', '--interface', self::OTHER)));

        self::assertStatus(408, ServerProcess::readAll($slow));
        self::assertSame('hello', self::bodyOf($server->get('/')));
        self::assertTrue($server->awaitLog('body_timeout'));
    }

    public function testABodyThatArrivesTooSlowlyIsGivenUpThoughSomethingArrivesAllTheTime(): void
    {
        $server = $this->serve(self::ROUTES, ', limits: new Limits(deadline: null, body: new BodyLimits(timeout: 0.5, minRate: 1_000))');
        // A busy machine may let half a second pass between two bytes, which is another reason.
        Timing::until(static function () use ($server): bool {
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

            return str_contains($server->log(), 'less than 1000 bytes per second');
        }, 'the rate is the reason in the log');
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

    private function withFibers(int $fibers, string $grpc = ''): ServerProcess
    {
        $program = (string) tempnam(sys_get_temp_dir(), 'weft');
        $autoload = var_export(\dirname(__DIR__, 2) . '/examples/users/autoload.php', true);
        $routes = self::ROUTES;
        $gate = ServerProcess::GATE;
        file_put_contents($program, <<<PHP
            <?php
            require $autoload;
            use Weft\Examples\Users\{GetUserRequest, ImportSummary, ListUserRequest, User, Users};
            use Weft\Grpc\Call;
            use Weft\Http\{BodyWriter, EventWriter, Request, Response, Router, Server, WebSocket};
            use function Weft\{async, delay, run, shield, signal, yieldNow};
            $gate
            final class Service implements Users
            {
                public function get(GetUserRequest \$request, Call \$call): User
                {
                    return new User(\$request->id, 'hello');
                }
                public function list(ListUserRequest \$request, Call \$call): iterable
                {
                    yield new User(1);
                    delay(60);
                }
                public function import(iterable \$requests, Call \$call): ImportSummary
                {
                    return new ImportSummary(iterator_count(\$requests));
                }
                public function lookup(iterable \$requests, Call \$call): iterable
                {
                    fwrite(STDERR, "lookup begins\n");
                    shield(static fn() => delay(60));
                    yield new User(1);
                }
            }
            run(static function (): void {
                \$routes = new Router();
                $routes
                \$server = new Server(\$routes);
                \$address = \$server->listen('127.0.0.1:0');
                \$grpc = new Weft\Grpc\Server(new Service()$grpc);
                \$grpc->share(\$server);
                async(\$server->run(...));
                async(\$grpc->run(...));
                // Now both have their share of the fibers, and the limits that follow from it.
                yieldNow();
                echo \$address, "\n";
                signal(SIGTERM);
                exit(0);
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

    /** Calls of gRPC with an empty message. */
    private function calls(string $path, int $count): string
    {
        $calls = '';
        for ($stream = 1; $stream < 2 * $count; $stream += 2) {
            $calls .= Wire::call($stream, $path) . Wire::frame(Wire::DATA, Wire::END_STREAM, $stream, "\0\0\0\0\0");
        }

        return $calls;
    }

    private function callUnary(ServerProcess $server): void
    {
        $message = (string) tempnam(sys_get_temp_dir(), 'weft');
        file_put_contents($message, "\0\0\0\0\0");
        $answer = $server->get('/api.Users/Get', '--interface', self::OTHER, '--http2-prior-knowledge', '-H', 'content-type: application/grpc', '-H', 'te: trailers', '--data-binary', "@$message");
        unlink($message);
        self::assertStringContainsString('hello', $answer);
    }

    /** @param resource $socket */
    private function exchangePing($socket, string $bytes): void
    {
        fwrite($socket, $bytes . Http2Wire::frame(Http2Wire::PING, 0, 0, 'arrived?'));
        for ($read = ''; !feof($socket) && !str_contains($read, 'arrived?');) {
            $read .= fread($socket, 1_024);
        }
        self::assertStringContainsString('arrived?', $read);
    }

    /** @param resource $socket */
    private static function hasAnswer($socket): bool
    {
        [$ready, $none] = [[$socket], null];

        return stream_select($ready, $none, $none, 0, 0) === 1;
    }
}
