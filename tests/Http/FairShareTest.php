<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Tests\Grpc\Wire;
use Weft\Tests\Timing;

/** One client within its limits never takes more than its share, and nothing it abandons keeps a place. */
final class FairShareTest extends HttpTestCase
{
    private const OTHER = '127.0.0.2';
    /** An event stream, a body that nobody reads, a page. */
    private const ROUTES = <<<'PHP'
        $routes->get("/events", static fn() => Response::events(static function (EventWriter $out) { $out->send("first"); delay(600); }));
        $routes->get("/big", static fn() => Response::stream(static function (BodyWriter $out) { for ($i = 0; $i < 1_000; $i++) { $out->write(str_repeat("x", 65_536)); } }));
        $read = static function (WebSocket $socket) { foreach ($socket as $message) { } };
        $routes->websocket("/socket", $read, new WebSocketOptions(pingInterval: 0.0));
        $routes->post("/", static fn(Request $request) => Response::text((string) strlen($request->body())));
        $routes->post("/form", static fn(Request $request) => Response::text((string) count($request->uploads())));
        $routes->get("/tasks", static fn() => Response::text(implode("\n", Weft\tasks())));
        $routes->get("/slow", static function () { fwrite(STDERR, "slow begins\n"); gate("slow"); return Response::text("slow"); });
        $routes->get("/children", static function () { fwrite(STDERR, "children begin\n"); Weft\all(array_fill(0, 60, static fn() => gate("children"))); return Response::text("all"); });
        $routes->get("/page", static function () { ob_start(); echo "page"; return Response::text((string) ob_get_clean()); });
        $routes->get("/", static fn() => Response::text("hello"));
        PHP;

    /** Connections of each kind of request that lasts. */
    private const EACH = 6;
    /** The tasks of those that have one, and how many there are. */
    private const TASKS = [
        'POST / from' => 2 * self::EACH, 'POST /form from' => self::EACH, 'GET /big from' => self::EACH, 'GET /events from' => self::EACH,
        'GET /socket from' => 2 * self::EACH, '/grpc.health.v1.Health/Watch from' => self::EACH, '/api.Users/List from' => 2 * self::EACH,
        '/api.Users/Import from' => self::EACH, '/api.Users/Lookup from' => self::EACH, '/library.Library/ListBooks from' => self::EACH,
    ];
    /** Arguments of both servers with which no timeout ends a request that lasts. */
    private const LIMITS = <<<'PHP'
        , new Limits(
            deadline: null, writeTimeout: 600.0, header: new HeaderLimits(timeout: 600.0), body: new BodyLimits(timeout: 600.0, minRate: null),
            keepalive: new Keepalive(idle: 600.0),
        )
        PHP;
    private const GRPC_OPTIONS = <<<'PHP'
        , new Weft\Grpc\ServerOptions(json: true, limits: new Weft\Grpc\Limits(
            clientShare: 1.0, messages: new Weft\Grpc\MessageLimits(requestTimeout: 600.0, writeTimeout: 600.0),
        ))
        PHP;

    private ?Directory $directory = null;
    private ?Certificates $certificates = null;

    protected function tearDown(): void
    {
        parent::tearDown();
        $this->directory?->remove();
        $this->certificates?->remove();
    }

    /** @dataProvider longLived */
    #[DataProvider('longLived')]
    public function testLongLivedRequestsOfOneClientLeaveFibersForOthers(\Closure $open): void
    {
        $server = $this->withFibers(40);
        $held = $open($server);
        self::assertTrue($server->awaitLog('long_lived'));

        self::assertSame('hello', self::bodyOf($server->get('/')));
        self::assertSame('hello', self::bodyOf($server->get('/', '--interface', self::OTHER)));
        $events = $server->connect(self::OTHER);
        fwrite($events, "GET /events HTTP/1.1\r\nHost: a\r\n\r\n");
        self::assertStringContainsString('data: first', ServerProcess::readUntil($events, 'data: first'));
        $socket = $server->connect(self::OTHER);
        fwrite($socket, WebSocketClient::request('/socket'));
        self::assertStatus(101, ServerProcess::readUntil($socket, "\r\n\r\n"));
        self::assertNotSame([], $held);
    }

    /** @return iterable<string, array{\Closure(ServerProcess): list<resource>}> */
    public static function longLived(): iterable
    {
        $onOneConnection = static fn(string $frames): \Closure => static fn(ServerProcess $server): array => [
            self::hold($server, Http2Wire::PREFACE . $frames),
        ];
        yield 'event streams on one connection' => [$onOneConnection(self::streams('/events', 45))];
        yield 'WebSockets on one connection' => [$onOneConnection(self::webSockets('/socket', 45))];
        $socket = WebSocketClient::request('/socket');
        yield 'WebSockets' => [
            static fn(ServerProcess $server): array => array_map(static fn() => self::hold($server, $socket), range(1, 45)),
        ];
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
        self::callUnary($server);
    }

    public function testEveryKindOfLongRequestFromOverAHundredConnectionsLeavesRoomForOthers(): void
    {
        $server = $this->withLongRequests();
        $open = [];
        foreach (self::longRequests() as $kind => $bytes) {
            for ($count = 0; $count < self::EACH; $count++) {
                $open[$kind][] = self::hold($server, $bytes);
            }
        }
        preg_match('/TLS at (\S+)/', $server->log(), $tls);
        for ($count = 0; $count < self::EACH; $count++) {
            $open['half a TLS handshake'][] = self::beginTls($tls[1]);
        }
        self::awaitHeld($server, $open, self::TASKS);
        // More than there are places: the limits of both servers are fitted to the fibers.
        $surplus = [
            'events' => [2, self::streams('/events', 30)],
            'a stream that is not read' => [2, self::streams('/big', 30)],
            'a WebSocket over HTTP/2' => [1, self::webSockets('/socket', 30)],
            'a health watch' => [4, self::calls('/grpc.health.v1.Health/Watch', 30)],
            'a stream of the server' => [1, self::calls('/api.Users/List', 30)],
        ];
        foreach ($surplus as $kind => [$connections, $frames]) {
            for ($count = 0; $count < $connections; $count++) {
                $open[$kind][] = self::hold($server, Http2Wire::PREFACE . $frames);
            }
        }
        self::assertTrue($server->awaitLog('long_lived'));
        self::assertTrue($server->awaitLog('the server has 40 health watches open'));
        $tasks = ['GET /big from' => 42, '/api.Users/List from' => 22] + self::TASKS;
        self::awaitHeld($server, $open, $tasks);
        self::callUnary($server);

        $cpu = [];
        for ($round = 0; $round < 10; $round++) {
            $cpu[] = self::cpuOf($server, static fn() => self::assertSame('hello', self::bodyOf($server->get('/', '--interface', self::OTHER))));
            $cpu[] = self::cpuOf($server, static fn() => self::callUnary($server));
        }

        self::assertLessThan(0.1, max($cpu), 'seconds of CPU: ' . implode(', ', $cpu));
        self::awaitHeld($server, $open, $tasks);
        self::assertGreaterThan(100, array_sum(array_map(count(...), $open)));
    }

    /** @return array<string, string> what a client sends of each kind of request that lasts, by its name */
    private static function longRequests(): array
    {
        $post = Http2Wire::frame(Http2Wire::HEADERS, Http2Wire::END_HEADERS, 1, Http2Wire::POST);
        $multipart = "Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 100000\r\n\r\n--b\r\n";

        return [
            'half a head' => "GET / HTTP/1.1\r\nHost: a\r\nX-",
            'half a head of HTTP/2' => Http2Wire::PREFACE . Http2Wire::frame(Http2Wire::HEADERS, Http2Wire::END_STREAM, 1, Http2Wire::GET),
            'half a small body' => "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nx",
            'half a body' => "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nx",
            'half a body over HTTP/2' => Http2Wire::PREFACE . $post . Http2Wire::frame(Http2Wire::DATA, 0, 1, 'x'),
            'half a form' => "POST /form HTTP/1.1\r\nHost: a\r\n{$multipart}Content-Disposition: form-data; name=\"f\"; filename=\"f\"\r\n\r\nx",
            'an idle connection' => "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
            'a file that is not read' => "GET /files/large HTTP/1.1\r\nHost: a\r\n\r\n",
            'a stream that is not read' => Http2Wire::PREFACE . self::streams('/big', 1),
            'events' => Http2Wire::PREFACE . self::streams('/events', 1),
            'a WebSocket' => WebSocketClient::request('/socket'),
            'a WebSocket over HTTP/2' => Http2Wire::PREFACE . self::webSockets('/socket', 1),
            'a health watch' => Http2Wire::PREFACE . self::calls('/grpc.health.v1.Health/Watch', 1),
            'a stream of the server' => Http2Wire::PREFACE . self::calls('/api.Users/List', 1),
            'a stream of the client' => Http2Wire::PREFACE . Wire::call(1, '/api.Users/Import') . Wire::frame(Wire::DATA, 0, 1, "\0\0\0\0\0"),
            'streams of both' => Http2Wire::PREFACE . Wire::call(1, '/api.Users/Lookup') . Wire::frame(Wire::DATA, 0, 1, "\0\0\0\0\0"),
            'a stream of gRPC-Web' => "POST /api.Users/List HTTP/1.1\r\nHost: a\r\nContent-Type: application/grpc-web+proto\r\n"
                . "Content-Length: 5\r\n\r\n\0\0\0\0\0",
            'a stream of JSON that is not read' => Http2Wire::PREFACE
                . self::streams('/v1/shelves/' . str_repeat('s', 60) . '/books?limit=999999999', 1),
        ];
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
        self::callUnary($server);
        self::assertLessThanOrEqual(16, substr_count($server->log(), 'lookup begins'));
    }

    public function testAbandonedRequestsAreNotInTheQueue(): void
    {
        $server = $this->serve(self::ROUTES, ', limits: new Limits(inFlight: 1, queue: 4, clientShare: 1.0)');
        $slow = $server->connect();
        fwrite($slow, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
        self::assertTrue($server->awaitLog('slow begins'));
        $flood = self::hold($server, Http2Wire::PREFACE);
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
        $abandoned = self::hold($server, Http2Wire::PREFACE);
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
            if ($slow === null || self::hasAnswer($slow)) {
                $slow = self::hold($server, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nx");
            }

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

    /** A server of all kinds of requests that last. */
    private function withLongRequests(): ServerProcess
    {
        $this->directory = new Directory();
        ftruncate(fopen("{$this->directory->path}/large", 'w'), 64 << 20);
        $this->certificates = new Certificates();
        $this->certificates->issue('a', 'a.test');
        $files = '$routes->static("/files", ' . var_export($this->directory->path, true) . ');';
        $tls = 'fprintf(STDERR, "TLS at %s\n", $server->listen("127.0.0.1:0", tls: new Tls(' . $this->certificates->php('a') . ')));';

        return $this->withFibers(400, self::GRPC_OPTIONS, self::LIMITS, "$files $tls");
    }

    /**
     * @param string $grpc arguments of the gRPC server after its services
     * @param string $http arguments of the HTTP server after its routes
     * @param string $more PHP code before `$server` listens
     */
    private function withFibers(int $fibers, string $grpc = '', string $http = '', string $more = ''): ServerProcess
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
            use Weft\Http\{BodyLimits, BodyWriter, Certificate, EventWriter, HeaderLimits, Keepalive, Limits, Request, Response, Router, Server, Tls};
            use Weft\Http\{WebSocket, WebSocketOptions};
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
                    delay(600);
                }
                public function import(iterable \$requests, Call \$call): ImportSummary
                {
                    return new ImportSummary(iterator_count(\$requests));
                }
                public function lookup(iterable \$requests, Call \$call): iterable
                {
                    fwrite(STDERR, "lookup begins\n");
                    shield(static fn() => delay(600));
                    yield new User(1);
                }
            }
            run(static function (): void {
                \$routes = new Router();
                $routes
                \$server = new Server(\$routes$http);
                $more
                \$address = \$server->listen('127.0.0.1:0');
                \$grpc = new Weft\Grpc\Server([new Service(), new Weft\Tests\Grpc\Library\Shelves()]$grpc);
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

    /**
     * Waits until the server has read everything that its clients have sent, and has as many tasks of each name.
     *
     * @param array<string, list<resource>> $open connections by the kind of their requests
     * @param array<string, int> $tasks
     */
    private static function awaitHeld(ServerProcess $server, array $open, array $tasks): void
    {
        Timing::until(static fn(): bool => self::unheld($open) === [], 'the server has read everything on connections that are open');
        Timing::until(static function () use ($server, $tasks): bool {
            $listed = self::bodyOf($server->get('/tasks', '--interface', self::OTHER));
            foreach ($tasks as $name => $count) {
                if (substr_count($listed, $name) < $count) {
                    return false;
                }
            }

            return true;
        }, 'every kind of request has its tasks');
    }

    /**
     * The kinds of connections that the server has closed, or of which it has not read everything.
     *
     * @param array<string, list<resource>> $open
     *
     * @return list<string>
     */
    private static function unheld(array $open): array
    {
        // Ports are hexadecimal, 01 is an established connection, and the last number the bytes that were not read.
        preg_match_all('/^ *\d+: \w+:(\w+) \w+:(\w+) 01 \w+:0+ /m', (string) file_get_contents('/proc/net/tcp'), $rows, PREG_SET_ORDER);
        $held = [];
        foreach ($rows as [, $server, $client]) {
            $held[hexdec($server) . ' ' . hexdec($client)] = true;
        }
        $port = static fn($socket, bool $remote): string => substr((string) strrchr((string) stream_socket_get_name($socket, $remote), ':'), 1);
        $isHeld = static fn($socket): bool => isset($held[$port($socket, true) . ' ' . $port($socket, false)]);

        return array_keys(array_filter($open, static fn(array $sockets): bool => array_filter($sockets, $isHeld) !== $sockets));
    }

    /** Seconds that the server computes meanwhile, in steps of 0.01. */
    private static function cpuOf(ServerProcess $server, \Closure $request): float
    {
        $before = $server->cpu();
        $request();

        return $server->cpu() - $before;
    }

    /** @return resource a connection whose TLS handshake waits for the client */
    private static function beginTls(string $address)
    {
        $socket = stream_socket_client("tcp://$address");
        // The head of a record of 512 bytes, and the first byte of its ClientHello (RFC 8446 §5.1).
        fwrite($socket, "\x16\x03\x01\x02\0\x01");

        return $socket;
    }

    /** @return resource a connection on which something was sent */
    private static function hold(ServerProcess $server, string $bytes)
    {
        $socket = $server->connect();
        fwrite($socket, $bytes);

        return $socket;
    }

    private static function streams(string $path, int $count): string
    {
        $requests = '';
        for ($stream = 1; $stream < 2 * $count; $stream += 2) {
            $requests .= Http2Wire::get($stream, $path);
        }

        return $requests;
    }

    private static function webSockets(string $path, int $count): string
    {
        return implode('', array_map(static fn(int $stream): string => WebSocketClient::connect(2 * $stream - 1, $path), range(1, $count)));
    }

    /** Calls of gRPC with an empty message. */
    private static function calls(string $path, int $count): string
    {
        $calls = '';
        for ($stream = 1; $stream < 2 * $count; $stream += 2) {
            $calls .= Wire::call($stream, $path) . Wire::frame(Wire::DATA, Wire::END_STREAM, $stream, "\0\0\0\0\0");
        }

        return $calls;
    }

    private static function callUnary(ServerProcess $server): void
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
