<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Tests\Timing;

final class MessageTest extends HttpTestCase
{
    public function testHeadersQueryAndCookiesAreReadWhenAskedFor(): void
    {
        $server = $this->serve('$routes->get("/", static fn(Request $r) => Response::json([$r->header("X-A"), $r->header("x-none"), $r->queryParameter("q"), $r->queryParameters(), $r->cookie("c"), $r->cookies(), $r->queryString(), $r->host()]));');

        $answer = json_decode(self::bodyOf($server->get('/?q=1%20&a[]=2&a[]=3', '-H', 'x-a: 1', '-H', 'x-a: 2', '-H', 'Cookie: c=a%20b; d=2; c=3', '-H', 'Host: example.org')), true);

        self::assertSame(['1, 2', null, '1 ', ['q' => '1 ', 'a' => ['2', '3']], 'a b', ['c' => 'a b', 'd' => '2'], 'q=1%20&a[]=2&a[]=3', 'example.org'], $answer);
    }

    public function testCookieFieldsOfHttp2AreOneField(): void
    {
        $server = $this->serve('$routes->get("/", static fn(Request $r) => Response::json([$r->header("cookie"), $r->headers()["cookie"], $r->headers()["x-a"], $r->cookies()]));');

        foreach (['--http2-prior-knowledge', '--http1.1'] as $protocol) {
            $answer = json_decode(self::bodyOf($server->get('/', $protocol, '-H', 'Cookie: a=1', '-H', 'cookie: b=2', '-H', 'x-a: 1', '-H', 'x-a: 2')), true);

            self::assertSame(['a=1; b=2', ['a=1; b=2'], ['1', '2'], ['a' => '1', 'b' => '2']], $answer, $protocol);
        }
    }

    public function testJsonAndFormsAreDecodedAndWhatIsNoJsonIs400(): void
    {
        $server = $this->serve('$routes->post("/json", static fn(Request $r) => Response::json($r->json()))->post("/form", static fn(Request $r) => Response::json($r->form()));');

        self::assertSame('{"a":[1,2.0]}', self::bodyOf($server->get('/json', '-d', '{"a": [1, 2.0]}')));
        self::assertStatus(400, $server->get('/json', '-d', '{'));
        self::assertSame("The body is empty; expected JSON\n", self::bodyOf($server->get('/json', '-X', 'POST')));
        self::assertSame('{"a":"1","b":{"c":"2"}}', self::bodyOf($server->get('/form', '-d', 'a=1&b[c]=2')));
        $withZero = "POST /form HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 9\r\n\r\na=1\0b&c=2";
        self::assertSame('{"a":"1\u0000b","c":"2"}', self::bodyOf($server->exchange($withZero)));
    }

    public function testJsonThatTakesTooMuchMemoryIs413(): void
    {
        $server = $this->serve('$routes->post("/", static fn(Request $r) => Response::json(count($r->json())));');
        $file = (string) tempnam(sys_get_temp_dir(), 'body');

        file_put_contents($file, '[' . str_repeat(str_repeat('[', 500) . str_repeat(']', 500) . ',', 1_000) . '0]');
        $refused = $server->get('/', '--data-binary', "@$file");
        file_put_contents($file, '[' . str_repeat('{"x":1,"y":2},', 70_000) . '0]');
        $accepted = $server->get('/', '--data-binary', "@$file");
        unlink($file);

        self::assertStatus(413, $refused);
        self::assertStringContainsString('The body consists of too many small lists and objects: its 1.0 MiB would take 103 MiB of memory, and may take 47 MiB', self::bodyOf($refused));
        self::assertSame('70001', self::bodyOf($accepted));
    }

    /** @dataProvider sizes */
    #[DataProvider('sizes')]
    public function testABodyOfAnySizeIsReadWholeAndByPiece(int $size, string ...$arguments): void
    {
        $server = $this->serve('$routes->post("/whole", static fn(Request $r) => Response::text(md5($r->body()) . strlen($r->body())))->post("/pieces", static function (Request $r) { $all = ""; foreach ($r->chunks() as $piece) { $all .= $piece; } return Response::text(md5($all) . strlen($all)); });');
        $file = (string) tempnam(sys_get_temp_dir(), 'body');
        file_put_contents($file, $body = substr(str_repeat(random_bytes(1000), intdiv($size, 1000) + 1), 0, $size));

        foreach (['/whole', '/pieces'] as $path) {
            self::assertSame(md5($body) . $size, self::bodyOf($server->get($path, '-H', 'Expect:', '--data-binary', "@$file", ...$arguments)), $path);
        }
        unlink($file);
    }

    /** @return iterable<string, array{int, ...}> */
    public static function sizes(): iterable
    {
        foreach (['HTTP/1.1' => [], 'chunked' => ['-H', 'Transfer-Encoding: chunked'], 'HTTP/2' => ['--http2-prior-knowledge']] as $name => $arguments) {
            foreach ([0, 10, 70_000, 5_000_000] as $size) {
                yield "$size bytes, $name" => [$size, ...$arguments];
            }
        }
    }

    public function testTasksThatReadTheSameBodyOrFormAtOnceAllHaveIt(): void
    {
        $server = $this->serve(<<<'PHP'
            $routes->post("/body", static fn(Request $r): array => array_map(strlen(...), Weft\all([$r->body(...), $r->body(...), static function () use ($r) { $first = async($r->body(...)); delay(0.01); $first->cancel(); return $r->body(); }])));
            $routes->post("/form", static fn(Request $r): array => array_map(count(...), Weft\all([$r->form(...), $r->uploads(...), $r->form(...)])));
            PHP);
        $file = (string) tempnam(sys_get_temp_dir(), 'body');
        file_put_contents($file, random_bytes(1_000_000));

        foreach (['--http1.1', '--http2-prior-knowledge'] as $protocol) {
            self::assertSame('[1000000,1000000,1000000]', self::bodyOf($server->get('/body', $protocol, '-H', 'Expect:', '--limit-rate', '10M', '--data-binary', "@$file")));
            self::assertSame('[1,1,1]', self::bodyOf($server->get('/form', $protocol, '-H', 'Expect:', '-F', 'a=1', '-F', "file=@$file")));
        }
        unlink($file);
    }

    public function testABodyWhoseReadWasCancelledIsReadAtOnceByTheNextRead(): void
    {
        $server = $this->serve(<<<'PHP'
            $read = static fn(Request $r): string => $r->path() === "/whole" ? $r->body() : implode("", iterator_to_array($r->chunks(), false));
            $routes->post("/{how}", static function (Request $r) use ($read) {
                for ($late = 0; $late < 3; $late++) {
                    try {
                        return Response::text("too early: " . Weft\timeout(0.01, static fn(): string => $read($r)));
                    } catch (Weft\Runtime\TimeoutException) {
                    }
                }
                fwrite(STDERR, "late\n");
                return Response::text(md5($read($r)));
            });
            PHP);
        $body = random_bytes(200_000);

        foreach (['/whole', '/pieces'] as $count => $path) {
            $socket = $server->connect();
            fwrite($socket, "POST $path HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 200000\r\n\r\n");
            Timing::until(static fn(): bool => substr_count($server->log(), "late\n") === $count + 1, 'the handler has stopped to read three times');
            fwrite($socket, $body);

            self::assertSame(md5($body), self::bodyOf(ServerProcess::readAll($socket)), $path);
        }
    }

    public function testABodyBeyondTheLimitIs413(): void
    {
        $server = $this->serve('$routes->post("/", static fn(Request $r) => Response::text($r->body()));', ', limits: new Limits(body: new BodyLimits(bytes: 1000))');
        $body = str_repeat('a', 1001);

        self::assertStatus(413, $server->get('/', '-d', $body));
        self::assertStatus(413, $server->get('/', '-d', $body, '-H', 'Transfer-Encoding: chunked'));
        self::assertStatus(413, $server->get('/', '-d', $body, '--http2-prior-knowledge'));
        self::assertStatus(200, $server->get('/', '-d', substr($body, 1)));
    }

    public function testAStreamedResponseIsSentPieceByPiece(): void
    {
        $server = $this->serve('$routes->get("/", static fn() => Response::stream((static function () { yield "one,"; gate("two"); yield "two"; })(), "text/plain"))->get("/writer", static fn() => Response::stream(static function (BodyWriter $out) { $out->write("a"); $out->write("b"); }));');
        $socket = $server->connect();
        fwrite($socket, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");

        $first = ServerProcess::readUntil($socket, "one,\r\n");

        self::assertStringContainsString("transfer-encoding: chunked\r\n", $first);
        self::assertStringEndsWith("4\r\none,\r\n", $first);
        $server->open('two');
        self::assertSame("3\r\ntwo\r\n0\r\n\r\n", ServerProcess::readAll($socket));
        self::assertSame('ab', self::bodyOf($server->get('/writer')));
        self::assertSame('one,two', self::bodyOf($server->get('/', '--http2-prior-knowledge')));
    }

    public function testAStreamWaitsForAClientThatDoesNotRead(): void
    {
        $server = $this->serve('$routes->get("/", static fn() => Response::stream(static function (BodyWriter $out) { for ($i = 0; $i < 1000; $i++) { $out->write(str_repeat("x", 65536)); fprintf(STDERR, "."); } }));');
        $socket = $server->connect();
        fwrite($socket, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        fread($socket, 1);
        usleep(500_000);

        self::assertLessThan(500, strlen($server->log()));
        self::assertGreaterThan(65_536_000, strlen(ServerProcess::readAll($socket)));
    }

    public function testAStreamThatFailsBreaksTheResponseOffAndIsLogged(): void
    {
        $server = $this->serve('$routes->get("/", static fn() => Response::stream((static function () { yield "one"; delay(0.05); throw new LogicException("in the middle"); })()));');

        [$code, $output] = $server->curl('/');

        self::assertSame(18, $code, $output);
        self::assertSame(92, $server->curl('/', '--http2-prior-knowledge')[0]);
        self::assertTrue($server->awaitLog('LogicException: in the middle'));
    }

    /** @dataProvider endsOfOthers */
    #[DataProvider('endsOfOthers')]
    public function testAStreamThatFailsWithTheEndOfAnotherTaskIsLoggedToo(string $failure, string $logged): void
    {
        $server = $this->serve('$routes->get("/", static fn() => Response::stream((static function () { yield "one"; ' . $failure . ' })()));');

        self::assertNotSame(0, $server->curl('/')[0]);
        self::assertTrue($server->awaitLog("GET / failed: $logged"), $server->log());
    }

    /** @return iterable<string, array{string, string}> */
    public static function endsOfOthers(): iterable
    {
        yield 'a task that was cancelled' => ['$task = async(static fn() => delay(9)); $task->cancel("no connection"); $task->await();', 'Weft\Runtime\CancelledException: Task #'];
        yield 'another client' => ['throw new Weft\Http\ClientDisconnectedException("of another request");', 'Weft\Http\ClientDisconnectedException: of another request'];
    }

    public function testAStreamWhoseClientLeavesIsNotLogged(): void
    {
        $server = $this->serve('$routes->get("/", static fn() => Response::stream((static function () { try { while (true) { yield str_repeat("x", 65536); delay(0.001); } } finally { fwrite(STDERR, "over"); } })()));', ', cancelOnDisconnect: false');
        $socket = $server->connect();
        fwrite($socket, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        fread($socket, 1);
        fclose($socket);

        self::assertTrue($server->awaitLog('over'));
        self::assertStatus(404, $server->get('/other'));
        self::assertSame('over', $server->log());
    }

    public function testCookiesAreSetOnePerField(): void
    {
        $server = $this->serve('$routes->get("/", static fn() => Response::text("")->withCookie(new Cookie("a", "1 2", maxAge: 60))->withCookie(new Cookie("b", "2", secure: false)));');

        $response = $server->get('/');

        self::assertStringContainsString("set-cookie: a=1%202; Max-Age=60; Path=/; Secure; HttpOnly; SameSite=Lax\r\n", $response);
        self::assertStringContainsString("set-cookie: b=2; Path=/; HttpOnly; SameSite=Lax\r\n", $response);
    }

    public function testAHeaderWithALineBreakIsRefused(): void
    {
        $server = $this->serve('$routes->get("/", static fn() => new Response(200, ["x" => "a\r\nset-cookie: b"]));');

        $response = $server->get('/');

        self::assertStatus(500, $response);
        self::assertStringNotContainsString('set-cookie', $response);
        self::assertTrue($server->awaitLog('the header field x has a line break'));
    }
}
