<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Tests\Grpc\Wire;
use Weft\Tests\Timing;

final class ServerTest extends HttpTestCase
{
    private const HELLO = '$routes->get("/", static fn() => Response::text("hello"));';

    public function testARequestIsAnsweredOverTcpWithTheRealPortOfPortZero(): void
    {
        $server = $this->serve(self::HELLO);

        self::assertStringNotContainsString(':0', $server->address);
        $response = $server->get('/');
        self::assertStatus(200, $response);
        self::assertStringContainsString("content-type: text/plain; charset=utf-8\r\n", $response);
        self::assertStringContainsString("content-length: 5\r\n", $response);
        self::assertMatchesRegularExpression('/^date: \w{3}, \d\d \w{3} \d{4} /m', $response);
        self::assertSame('hello', self::bodyOf($response));
    }

    public function testARequestIsAnsweredOverAUnixSocket(): void
    {
        $path = sys_get_temp_dir() . '/weft-' . getmypid() . '.sock';
        $server = $this->serve('$routes->get("/", static fn(Request $request) => Response::text($request->clientAddress() ?? "nobody"));', address: "unix:$path");

        try {
            self::assertSame('nobody', self::bodyOf($server->get('/')));
            $server->stop();
        } finally {
            @unlink($path);
        }
    }

    public function testHttp2WithPriorKnowledgeSharesThePort(): void
    {
        $server = $this->serve('$routes->post("/", static fn(Request $request) => Response::text($request->protocol() . $request->body()));');

        self::assertSame('2abc', self::bodyOf($server->get('/', '--http2-prior-knowledge', '-d', 'abc')));
        self::assertSame('1.1abc', self::bodyOf($server->get('/', '-d', 'abc')));
    }

    /** RFC 9110 §6.4.1: neither status has a body. */
    public function testABodyThatAHandlerGivesToAStatusWithoutOneIsNotSentOverEitherProtocol(): void
    {
        $server = $this->serve(<<<'PHP'
            $routes->get('/204', static fn() => new Response(204, ['content-length' => '4'], 'text'));
            $routes->get('/304', static fn() => new Response(304, ['etag' => '"a"'], 'text'));
            $routes->get('/length', static fn() => new Response(304, ['content-length' => '7']));
            PHP);

        foreach (['--http1.1', '--http2-prior-knowledge'] as $protocol) {
            foreach (['/204', '/304'] as $path) {
                foreach ([[], ['--head']] as $head) {
                    [$code, $response] = $server->curl($path, '-i', $protocol, ...$head);
                    self::assertSame(0, $code, "$protocol $path $response");
                    self::assertStatus((int) \substr($path, 1), $response);
                    self::assertSame('', self::bodyOf($response));
                    self::assertStringNotContainsString('content-length', $response, "$protocol $path");
                }
            }
            self::assertStringContainsString('content-length: 7', $server->curl('/length', '-i', $protocol, '--head')[1], 'that of the representation');
        }
    }

    public function testHeaderFieldsInAListAreRefusedByName(): void
    {
        $server = $this->serve('$routes->get("/", static fn() => new Response(200, ["x-foo: bar"]));');

        self::assertStatus(500, $server->get('/'));
        self::assertTrue($server->awaitLog('header fields are [name => value], got the number 0 as a name'));
    }

    public function testAPeerOfASocketForBothVersionsOfIpHasItsIpv4Address(): void
    {
        $server = $this->serve('$routes->get("/", static fn(Request $request) => Response::text($request->clientAddress() ?? ""));', address: '[::]:0');

        $port = \substr((string) \strrchr($server->address, ':'), 1);
        self::assertSame('127.0.0.1', \file_get_contents("http://127.0.0.1:$port/"));
    }

    public function testPipelinedRequestsAreAnsweredInOrderOnOneConnection(): void
    {
        $server = $this->serve('$routes->get("/{n}", static function (string $n) { delay($n === "1" ? 0.05 : 0.0); return Response::text("<$n>"); });');
        $one = static fn(int $n, string $more = '') => "GET /$n HTTP/1.1\r\nHost: a\r\n$more\r\n";

        $response = $server->exchange($one(1) . $one(2) . $one(3, "Connection: close\r\n"));

        preg_match_all('/<(\d)>/', $response, $order);
        self::assertSame(['1', '2', '3'], $order[1]);
    }

    public function testAHandlerThatThrowsIsA500WithALogLineAndNoTrace(): void
    {
        $server = $this->serve('$routes->get("/", static fn() => throw new LogicException("secret reason"));');

        $response = $server->get('/');

        self::assertStatus(500, $response);
        self::assertStringNotContainsString('secret', $response);
        self::assertTrue($server->awaitLog('GET / failed: LogicException: secret reason'));
        self::assertStatus(500, $server->get('/'));
    }

    public function testInDevelopmentTheErrorPageShowsTheTrace(): void
    {
        $server = $this->serve('$routes->get("/", static fn() => throw new LogicException("<reason>"));', app: 'debug: true');

        $response = $server->get('/');

        self::assertStatus(500, $response);
        self::assertStringContainsString('LogicException: &lt;reason&gt;', $response);
        self::assertStringContainsString('#0 ', $response);
    }

    public function testInDevelopmentAProgramGetsProblemDetailsAndBothShowNoFramesOfWeft(): void
    {
        $server = $this->serve('$routes->get("/", static function (Request $request) { throw new LogicException("reason"); });', app: 'debug: true');

        $page = $server->get('/', '-H', 'accept: text/html, application/json');
        self::assertStringContainsString("\r\ncontent-type: text/html", $page);
        self::assertMatchesRegularExpression('/… \d+ frames of Weft/', $page);
        self::assertStringNotContainsString('/src/Http/', $page);

        $problem = $server->get('/', '-H', 'accept: application/json');
        self::assertStatus(500, $problem);
        self::assertStringContainsString("\r\ncontent-type: application/problem+json", $problem);
        $details = json_decode(self::bodyOf($problem), true);
        self::assertStringStartsWith('LogicException: reason at ', $details['detail']);
        self::assertSame(['LogicException', 'reason'], [$details['exception']['class'], $details['exception']['message']]);
        self::assertStringNotContainsString('/src/Http/', self::bodyOf($problem));
    }

    public function testAnswersAreCountedByTheClassOfTheirStatus(): void
    {
        $server = $this->serve('$app->metrics("127.0.0.1:0"); $routes->get("/", static fn() => Response::text("a"));');
        foreach ([200 => ['/'], 404 => ['/nothing'], 405 => ['/', '-X', 'DELETE']] as $status => $request) {
            foreach (['--http1.1', '--http2-prior-knowledge'] as $version) {
                self::assertStatus($status, $server->get(...[...$request, $version]));
            }
        }

        $metrics = self::metrics($server);

        foreach (['2xx' => 2, '4xx' => 4, '5xx' => 0] as $class => $count) {
            self::assertStringContainsString("weft_http_requests_total{status=\"$class\"} $count\n", $metrics);
        }
    }

    public function testAnHttpExceptionIsTheAnswer(): void
    {
        $server = $this->serve('$routes->get("/", static fn() => throw new HttpException(418, "I am a teapot", ["x-pot" => "tea"]));');

        $response = $server->get('/');

        self::assertStatus(418, $response);
        self::assertStringContainsString("x-pot: tea\r\n", $response);
        self::assertSame("I am a teapot\n", self::bodyOf($response));
        self::assertSame('', $server->log());
    }

    public function testAnHttpExceptionIsTheAnswerAlsoIfItsMessageIsNotUtf8(): void
    {
        $server = $this->serve(<<<'PHP'
            $fails = static fn(Request $r) => throw new HttpException(404, "no user \"{$r->queryParameter("n")}\"");
            $routes->get("/plain", $fails);
            $routes->group("/cors", static fn(Router $group) => $group->get("", $fails), new Weft\Http\Cors(["*"]));
            $routes->group("/typed", static fn(Router $group) => $group->get("/{id}", static fn(int $id, Request $request): array => $fails($request)));
            $sessions = new Weft\Http\Sessions(new class implements Weft\Http\SessionStore {
                public function read(string $id): ?Weft\Http\Sessions\StoredSession { return null; }
                public function write(string $id, string $data, int $version, float $seconds): bool { return true; }
                public function delete(string $id): void {}
                public function prune(): void {}
            });
            $routes->group("/session", static fn(Router $group) => $group->get("", $fails), $sessions);
            PHP);

        foreach (['/plain', '/cors', '/typed/1', '/session'] as $path) {
            $response = $server->get("$path?n=%ff", '-H', 'accept: application/json', '-H', 'origin: https://a.example');
            self::assertStatus(404, $response);
            self::assertSame("no user \"\u{FFFD}\"", json_decode(self::bodyOf($response), true)['detail'] ?? null, $response);
        }
        self::assertSame('', $server->log());
    }

    public function testAFailureThatCannotBeWrittenIsAResponseWithABody(): void
    {
        $server = $this->serve(<<<'PHP'
            final class Unwritable extends HttpException { public function problem(): Weft\Http\Problem { return new Weft\Http\Problem(409, extensions: ["rate" => NAN]); } }
            $routes->get("/", static fn() => throw new Unwritable(409));
            PHP);

        $response = $server->get('/', '-H', 'accept: application/json');

        self::assertStatus(500, $response);
        self::assertSame(500, json_decode(self::bodyOf($response), true)['status'] ?? null, $response);
        self::assertTrue($server->awaitLog('$.rate'));
    }

    public function testFieldsOfTheApplicationReplaceThoseOfTheServerInAnyCase(): void
    {
        $server = $this->serve('
            $routes->get("/", static fn() => throw new HttpException(401, "<b>login</b>", ["Content-Type" => "text/html", "WWW-Authenticate" => "Basic"]));
            $routes->get("/{name}", static fn(string $name) => Response::stream(["a;b"], headers: [$name => "text/csv"]));
        ');

        foreach ([[], ['-H', 'accept: application/json']] as $arguments) {
            $response = $server->get('/', ...$arguments);
            self::assertSame(['text/html', 'Basic'], [self::field($response, 'content-type'), self::field($response, 'www-authenticate')], $response);
        }
        self::assertSame(['text/csv', 'text/csv'], [self::field($server->get('/Content-Type'), 'content-type'), self::field($server->get('/content-type'), 'content-type')]);
    }

    public function testAClientThatGoesAwayCancelsItsTask(): void
    {
        $server = $this->serve('$routes->get("/", static function () { fprintf(STDERR, "working"); try { delay(60); } catch (Throwable $e) { fprintf(STDERR, $e->getMessage()); throw $e; } return Response::text(""); });');

        $this->leave($server);

        self::assertTrue($server->awaitLog('the client has disconnected'));
    }

    public function testAClientThatGoesAwayCancelsNothingWhereThatIsSwitchedOff(): void
    {
        $server = $this->serve('$routes->get("/", static function () { fprintf(STDERR, "working"); gate("finish"); fprintf(STDERR, "finished"); return Response::text(""); });', ', cancelOnDisconnect: false');

        $this->leave($server);
        // Once it answers again it has heard that the first client has gone.
        self::assertStatus(404, $server->get('/other'));
        $server->open('finish');

        self::assertTrue($server->awaitLog('finished'));
    }

    public function testARequestPastItsDeadlineIsCancelledAndAnswered503(): void
    {
        $server = $this->serve('$routes->get("/", static function () { delay(60); return Response::text(""); });', ', limits: new Limits(deadline: 0.5)');

        $response = $server->get('/');

        self::assertStatus(503, $response);
        self::assertStringContainsString("retry-after: 1\r\n", $response);
    }

    public function testRequestsBeyondTheLimitInFlightWaitAndBeyondTheQueueAreRefused(): void
    {
        $server = $this->serve('$routes->get("/", static function () { fprintf(STDERR, "working"); gate("done"); return Response::text("done"); });', ', limits: new Limits(inFlight: 1, queue: 1)');
        $sockets = [];
        for ($i = 0; $i < 3; $i++) {
            $sockets[] = $socket = $server->connect();
            fwrite($socket, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
            self::assertTrue($server->awaitLog('working'));
        }

        // Of the other two, one waits in the queue, and the one that came after it is refused.
        [$answered, $none] = [$sockets, null];
        stream_select($answered, $none, $none, (int) Timing::DEADLINE, 0);
        self::assertCount(1, $answered);
        self::assertNotSame(0, key($answered), 'the handler still runs');
        self::assertStatus(503, ServerProcess::readAll(current($answered)));
        $server->open('done');
        foreach (array_diff_key($sockets, $answered) as $socket) {
            self::assertStatus(200, ServerProcess::readAll($socket));
        }
    }

    public function testAHandlersChildTasksEndBeforeTheAnswerAndTheirFailureIsItsFailure(): void
    {
        $server = $this->serve('$routes->get("/", static function () { async(static function () { delay(0.05); throw new DomainException("of a child"); }); return Response::text("fine"); });');

        self::assertStatus(500, $server->get('/'));
        self::assertTrue($server->awaitLog('DomainException: of a child'));
    }

    public function testSigtermAnswersWhatIsInFlightAndEndsTheProcess(): void
    {
        $server = $this->serve('$routes->get("/", static function () { fprintf(STDERR, "working"); gate("done"); return Response::text("done"); });');
        $socket = $server->connect();
        fwrite($socket, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        self::assertTrue($server->awaitLog('working'));

        $server->signal();
        Timing::until(static fn(): bool => !$server->listens(), 'the server has stopped to listen');
        $server->open('done');
        $response = ServerProcess::readAll($socket);

        self::assertStatus(200, $response);
        self::assertStringContainsString("connection: close\r\n", $response);
        self::assertStringEndsWith('done', $response);
        self::assertSame([0, "ended\n"], $server->stop());
    }

    /** A client that goes away once its request is handled. */
    private function leave(ServerProcess $server): void
    {
        $socket = $server->connect();
        fwrite($socket, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        self::assertTrue($server->awaitLog('working'));
        fclose($socket);
    }

    public function testARequestThatOutlivesTheGraceIsCancelledAndAnswered503(): void
    {
        $server = $this->serve('$routes->get("/", static function () { fprintf(STDERR, "working"); try { delay(600); } finally { fprintf(STDERR, "cleaned up"); } return Response::text(""); });', app: 'grace: 0.3');
        $socket = $server->connect();
        fwrite($socket, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        self::assertTrue($server->awaitLog('working'));

        $server->signal();

        self::assertStatus(503, ServerProcess::readAll($socket));
        self::assertTrue($server->awaitLog('cleaned up'));
        self::assertMatchesRegularExpression('~GET / from 127\.0\.0\.1:\d+ did not end within the grace period of 0\.3 seconds and is cancelled: #\d+ .* waits for Weft\\\\delay\(\)~', $server->log());
        self::assertSame([0, "ended\n"], $server->stop());
    }

    /** @dataProvider withoutAConnection */
    #[DataProvider('withoutAConnection')]
    public function testAHandlerWithoutAConnectionThatOutlivesTheGraceIsCancelled(string $routes, string $request): void
    {
        $server = $this->serve($routes, ', cancelOnDisconnect: false', app: 'grace: 0.3');
        $socket = $server->connect();
        fwrite($socket, $request);
        self::assertTrue($server->awaitLog('working'));
        fclose($socket);
        // Once it answers again, the first connection has ended.
        self::assertStatus(404, $server->get('/other'));

        $server->signal();

        self::assertTrue($server->awaitLog('cleaned up'));
        self::assertStringContainsString('did not end within the grace period of 0.3 seconds and is cancelled', $server->log());
        self::assertSame([0, "ended\n"], $server->stop());
    }

    /** @return iterable<string, array{string, string}> */
    public static function withoutAConnection(): iterable
    {
        $get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        $timer = 'fprintf(STDERR, "working"); try { delay(600); } finally { fprintf(STDERR, "cleaned up"); }';
        $channel = str_replace('delay(600)', '(new Weft\Runtime\Channel(1))->receive()', $timer);
        yield 'a timer' => ["\$routes->get('/', static function (): void { $timer });", $get];
        yield 'what never happens' => ["\$routes->get('/', static function (): void { $channel });", $get];
        yield 'a WebSocket' => ["\$routes->websocket('/', static function (WebSocket \$socket): void { $channel });", WebSocketClient::request()];
        $after = "\$request->afterResponse(static function (): void { $channel });";
        yield 'work after the response' => ["\$routes->get('/', static function (Request \$request): Response { $after return Response::text(''); });", $get];
    }

    public function testAHandlerThatEndsItsWorkEarlyWhenTheGraceEndsGivesTheAnswer(): void
    {
        $server = $this->serve('$routes->get("/", static function () { fprintf(STDERR, "working"); try { delay(600); } catch (Weft\Runtime\CancelledException) { return Response::text("the first half"); } });', app: 'grace: 0.3');
        $socket = $server->connect();
        fwrite($socket, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        self::assertTrue($server->awaitLog('working'));

        $server->signal();
        $response = ServerProcess::readAll($socket);

        self::assertStatus(200, $response);
        self::assertSame('the first half', self::bodyOf($response));
        self::assertSame([0, "ended\n"], $server->stop());
    }

    public function testARequestThatStillWaitsForItsTurnWhenTheGraceEndsIsAnsweredAndNotBegun(): void
    {
        $server = $this->serve(
            '$routes->get("/{n}", static function (string $n) { fprintf(STDERR, "working on $n"); delay(600); return Response::text(""); });',
            ', new Limits(inFlight: 1)',
            app: 'grace: 0.3',
        );
        $wire = new Wire($server->connect());
        $request = static fn(int $stream, string $path): string => Wire::head($stream, [':method' => 'GET', ':scheme' => 'http', ':path' => $path, ':authority' => 'a'], Wire::END_STREAM);
        $wire->send($request(1, '/1') . $request(3, '/2'));
        self::assertTrue($server->awaitLog('working on 1'));
        $server->signal();

        self::assertEqualsCanonicalizing([1, 3], [$wire->await(Wire::HEADERS)[1] ?? null, $wire->await(Wire::HEADERS)[1] ?? null], 'the streams that are answered');
        self::assertStringNotContainsString('working on 2', $server->log());
        self::assertSame([0, "ended\n"], $server->stop());
    }
}
