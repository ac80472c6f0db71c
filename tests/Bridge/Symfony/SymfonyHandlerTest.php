<?php

declare(strict_types=1);

namespace Weft\Tests\Bridge\Symfony;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Tests\Http\HttpTestCase;
use Weft\Tests\Http\ServerProcess;
use Weft\Tests\Timing;

/** A Symfony kernel in a process that serves many requests. */
final class SymfonyHandlerTest extends HttpTestCase
{
    /** A kernel whose state is that of its request; `/wait` stays in it, `/slow-end` stays in terminate(). */
    private const KERNEL = <<<'PHP'
        use Symfony\Component\HttpFoundation\{JsonResponse, Request as Message, RequestStack, Response as Answer, StreamedResponse};
        use Symfony\Component\HttpKernel\{HttpKernelInterface, TerminableInterface};
        $GLOBALS["made"] = 0;
        $GLOBALS["gate"] = new Weft\Runtime\Channel(100);
        final class Application implements HttpKernelInterface, TerminableInterface {
            private RequestStack $stack;
            public int $number;
            public function __construct() { $this->stack = new RequestStack(); $this->number = ++$GLOBALS["made"]; }
            public function handle(Message $request, int $type = self::MAIN_REQUEST, bool $catch = true): Answer {
                $this->stack->push($request);
                try {
                    match ($request->getPathInfo()) {
                        "/wait" => $GLOBALS["gate"]->receive(),
                        "/pause" => delay(0.05),
                        "/php" => $this->changePhp($request->query->get("tag")),
                        "/fail" => throw new LogicException("broken kernel"),
                        "/suspicious" => throw new Symfony\Component\HttpFoundation\Exception\SuspiciousOperationException("odd host"),
                        default => null,
                    };
                    if ($request->getPathInfo() === "/mode") {
                        return new Answer($_SERVER["APP_RUNTIME_MODE"] ?? "none");
                    }
                    if ($request->getPathInfo() === "/dump") {
                        is_file($dumper = "/usr/share/php/Symfony/Component/VarDumper/autoload.php") && require_once $dumper;
                        Symfony\Component\VarDumper\VarDumper::dump(["dumped" => $request->query->get("tag")]);
                        return new Answer("answered");
                    }
                    if ($request->getPathInfo() === "/stream") {
                        return new StreamedResponse(fn() => print("kernel $this->number"));
                    }
                    $current = $this->stack->getCurrentRequest();
                    return new JsonResponse([
                        "kernel" => $this->number, "tag" => $current->query->get("tag"), "path" => $current->getPathInfo(),
                        "user" => $current->getUser(), "password" => $current->getPassword(), "agent" => $current->headers->get("user-agent"),
                        "server" => array_intersect_key($current->server->all(), ["HTTP_USER_AGENT" => 1, "PHP_AUTH_USER" => 1, "PHP_AUTH_DIGEST" => 1, "HTTP_PROXY" => 1, "HTTP_X_REAL_IP" => 1, "HTTP_ACCEPT_LANGUAGE" => 1]),
                        "two" => $current->headers->all("x-two"), "real" => $current->headers->get("x-real-ip"), "type" => $current->headers->get("content-type"),
                    ]);
                } finally {
                    $this->stack->pop();
                }
            }
            private function changePhp(string $tag): void {
                header("X-Php: $tag");
                setcookie("php", $tag);
                http_response_code(418);
                date_default_timezone_set("Etc/GMT+" . ord($tag) % 12);
                Message::setTrustedProxies(["10.0.0." . ord($tag)], Message::HEADER_X_FORWARDED_FOR);
                Message::enableHttpMethodParameterOverride();
                set_error_handler(static function () use ($tag): bool { $GLOBALS["handled"][] = $tag; return true; });
                register_shutdown_function(static fn() => error_log("shut down $tag"));
                echo "printed $tag ";
                $GLOBALS["gate"]->receive();
                trigger_error("x");
                $seen = [$_GET["tag"], filter_input(INPUT_GET, "tag"), date_default_timezone_get() === "Etc/GMT+" . ord($tag) % 12, Message::getTrustedProxies() === ["10.0.0." . ord($tag)], end($GLOBALS["handled"]) === $tag, headers_list()[0]];
                echo json_encode($seen), " ";
            }
            // usleep() would let other tasks run.
            private static function occupy(): void { for ($until = hrtime(true) + 10e9; hrtime(true) < $until && !is_file(getenv("WEFT_TEST_GATES") . ".busy");) { clearstatcache(); } }
            public function terminate(Message $request, Answer $response): void {
                match ($request->getPathInfo()) {
                    "/terminate-fails" => throw new LogicException("terminate broke"),
                    "/slow-end" => [$GLOBALS["gate"]->receive(), error_log("terminated for " . $request->query->get("tag"))],
                    "/busy-end" => [self::occupy(), error_log("terminated busily")],
                    "/async-end" => async(static function () { delay(0.01); error_log("terminated by a task"); }),
                    default => null,
                };
            }
        }
        $routes->get("/open", static function () { $GLOBALS["gate"]->send(true); return Response::text("opened"); });
        PHP;

    private const KERNEL_HEAD = "use function Weft\\{async, delay};\nuse Weft\\Http\\Response;\n";

    public function testTheKernelIsToldThatItIsNoConsole(): void
    {
        self::assertStringContainsString('web=1&worker=1', $this->symfony()->get('/mode'));
    }

    public function testWhatIsDumpedIsHtmlInTheResponse(): void
    {
        $server = $this->symfony(extensions: ['mbstring']);

        self::assertMatchesRegularExpression('/<pre class=sf-dump.*dumped.*one.*answered/s', $server->get('/dump?tag=one'), $server->log());
        self::assertMatchesRegularExpression('/<pre class=sf-dump.*dumped.*two.*answered/s', $server->get('/dump?tag=two'));
    }

    public function testWhatTheBootOfAKernelSetsStaysAndWhatARequestSetsDoesNot(): void
    {
        $server = $this->symfony(<<<'PHP'
            Weft\Bridge\Symfony\SymfonyHandler::pool(static fn() => new class("test", false) extends Symfony\Component\HttpKernel\Kernel {
                public function registerBundles(): iterable { return []; }
                public function registerContainerConfiguration(Symfony\Component\Config\Loader\LoaderInterface $loader): void {}
                public function boot(): void {
                    if (!$this->booted) {
                        date_default_timezone_set("Asia/Tokyo");
                        Symfony\Component\HttpFoundation\Request::setTrustedProxies(["192.0.2.1"], Symfony\Component\HttpFoundation\Request::HEADER_X_FORWARDED_FOR);
                    }
                    $this->booted = true;
                }
                public function terminate($request, $response): void {}
                public function handle($request, int $type = self::MAIN_REQUEST, bool $catch = true): Symfony\Component\HttpFoundation\Response {
                    $seen = [date_default_timezone_get(), implode($request::getTrustedProxies()), $request::getHttpMethodParameterOverride() ? "override" : "none", $request->getFormat("x/y") ?? "none"];
                    date_default_timezone_set("Europe/Vienna");
                    $request::setTrustedProxies(["192.0.2.2"], $request::HEADER_X_FORWARDED_FOR);
                    $request::enableHttpMethodParameterOverride();
                    $request->setFormat("y", "x/y");
                    return new Symfony\Component\HttpFoundation\Response(implode(" ", $seen));
                }
            }, 1)
            PHP);

        foreach ([1, 2, 3] as $_) {
            self::assertStringEndsWith("\r\n\r\nAsia/Tokyo 192.0.2.1 none none", $server->get('/'));
        }
    }

    public function testHttpBasicAuthenticates(): void
    {
        $server = $this->symfony();

        $seen = self::json($server->get('/', '-u', 'ana:se:cret'));

        self::assertSame(['ana', 'se:cret', 'ana'], [$seen['user'], $seen['password'], $seen['server']['PHP_AUTH_USER']]);
    }

    public function testDigestReachesTheApplication(): void
    {
        $seen = self::json($this->symfony()->get('/', '-H', 'Authorization: Digest username="ana", nonce="x"'));

        self::assertSame('username="ana", nonce="x"', $seen['server']['PHP_AUTH_DIGEST']);
    }

    public function testTheUserAgentIsTheClients(): void
    {
        $server = $this->symfony();

        $seen = self::json($server->get('/', '-A', 'test/1.0'));
        self::assertSame(['test/1.0', 'test/1.0'], [$seen['agent'], $seen['server']['HTTP_USER_AGENT']]);
        $none = self::json($server->get('/', '-H', 'User-Agent:'));
        self::assertSame([null, []], [$none['agent'], $none['server']]);
    }

    public function testFieldsThatWouldPassForOthersDoNotReachTheApplication(): void
    {
        $fields = ['PHP-Auth-User: admin', 'PHP_AUTH_USER: admin', 'Php-Auth-Pw: x', 'X_Real_IP: 10.0.0.1', 'Proxy: http://evil/', 'X-Two: 1', 'X-Two: 2'];

        $seen = self::json($this->symfony()->get('/', ...array_merge(...array_map(static fn(string $field): array => ['-H', $field], $fields))));

        self::assertSame([null, null, null, ['1', '2']], [$seen['user'], $seen['password'], $seen['real'], $seen['two']]);
        self::assertSame(['HTTP_USER_AGENT'], array_keys($seen['server']));
    }

    /** @dataProvider authorities */
    #[DataProvider('authorities')]
    public function testTheApplicationSeesOneHost(\Closure $ask): void
    {
        $server = $this->symfony(<<<'PHP'
            new Weft\Bridge\Symfony\SymfonyHandler(static fn($request) => new Symfony\Component\HttpFoundation\JsonResponse([
                $request->getHost(), $request->getPort(), $request->headers->get("host"),
                $request->server->get("HTTP_HOST"), $request->server->get("SERVER_NAME"),
            ]))
            PHP);

        self::assertSame(['internal', 81, 'internal:81', 'internal:81', 'internal'], self::json($ask($server)));
    }

    /** @return iterable<string, array{\Closure(ServerProcess): string}> */
    public static function authorities(): iterable
    {
        $absolute = "GET http://internal:81/a HTTP/1.1\r\nHost: public\r\nConnection: close\r\n\r\n";
        yield 'the absolute form' => [static fn(ServerProcess $server): string => $server->exchange($absolute)];
        // curl sends it as the authority.
        $options = ['--http2-prior-knowledge', '-H', 'Host: internal:81'];
        yield 'an authority of HTTP/2' => [static fn(ServerProcess $server): string => $server->get('/a', ...$options)];
    }

    public function testAPathWithABackslashIsServed(): void
    {
        $server = $this->symfony();

        self::assertStringContainsString('"path":"\/a\\\\b"', $server->exchange("GET /a\\b HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
        self::assertStringNotContainsString('failed', $server->log());
    }

    public function testARequestTheApplicationRefusesToReadIsA400(): void
    {
        $server = $this->symfony();

        self::assertStatus(400, $server->get('/suspicious'));
        self::assertStringNotContainsString('failed', $server->log());
    }

    public function testTheAnswerLeavesBeforeTerminateRuns(): void
    {
        $server = $this->symfony();

        self::assertStatus(200, $server->get('/slow-end?tag=a'));

        self::assertStringNotContainsString('terminated', $server->log());
        self::assertStatus(200, $server->get('/open'));
        self::assertTrue($server->awaitLog('terminated for a'), 'a client that has gone with its answer does not cancel it');
    }

    public function testTheAnswerLeavesBeforeATerminateThatDoesNotWait(): void
    {
        $server = $this->symfony();
        $socket = $server->connect();
        fwrite($socket, "GET /busy-end HTTP/1.1\r\nHost: a\r\n\r\n");

        self::assertStringStartsWith('HTTP/1.1 200', (string) fgets($socket));

        self::assertStringNotContainsString('terminated', $server->log());
        $server->open('busy');
        self::assertTrue($server->awaitLog('terminated busily'));
    }

    public function testTheAnswerLeavesBeforeATerminateThatDoesNotWaitAlsoOfARequestWithABody(): void
    {
        $server = $this->symfony();
        $socket = $server->connect();
        // Not plain: another part of the server writes the response.
        fwrite($socket, "POST /busy-end HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx");

        self::assertStringStartsWith('HTTP/1.1 200', (string) fgets($socket));

        self::assertStringNotContainsString('terminated', $server->log());
        $server->open('busy');
        self::assertTrue($server->awaitLog('terminated busily'));
    }

    /** Every response of Symfony has a date: it must not keep the server from writing it at once. */
    public function testAResponseWithADateOfItsOwnIsOnTheWireWhenItHasBeenGiven(): void
    {
        $server = $this->serve(<<<'PHP'
            $routes->get('/', static function (Request $request): Response {
                $request->respond(200, ['date' => 'Sun, 06 Nov 1994 08:49:37 GMT'], 'answer');
                error_log($request->isQueued() ? 'queued' : 'on the wire');

                return Response::noContent();
            });
            PHP);

        $answer = $server->get('/');

        self::assertSame(1, \preg_match_all('/^date: (.*)\r$/mi', $answer, $dates), $answer);
        self::assertSame('Sun, 06 Nov 1994 08:49:37 GMT', $dates[1][0]);
        self::assertStringEndsWith("\r\n\r\nanswer", $answer);
        self::assertTrue($server->awaitLog('on the wire'), $server->log());
    }

    public function testAnExceptionOfTerminateIsLoggedAndChangesNothing(): void
    {
        $server = $this->symfony();

        self::assertSame('/terminate-fails', self::json($server->get('/terminate-fails'))['path']);
        self::assertTrue($server->awaitLog('GET /terminate-fails failed after its response: LogicException: terminate broke'));
        self::assertStatus(200, $server->get('/'));
    }

    public function testTasksOfTerminateEndWithIt(): void
    {
        $server = $this->symfony();

        self::assertStatus(200, $server->get('/async-end'));
        self::assertTrue($server->awaitLog('terminated by a task'));
    }

    public function testOneKernelServesOneRequestAtATime(): void
    {
        $server = $this->symfony();

        $bodies = self::together($server, '/pause', 6);

        self::assertSame(array_fill(0, 6, 1), array_column($bodies, 'kernel'));
        self::assertSame(range(0, 5), array_map(intval(...), array_column($bodies, 'tag')));
    }

    public function testRequestsInAPoolOfKernelsNeverSeeEachOther(): void
    {
        $server = $this->symfony('Weft\Bridge\Symfony\SymfonyHandler::pool(static fn() => new Application(), size: 3)');

        $sockets = [];
        foreach (['a', 'b', 'c'] as $tag) {
            $sockets[] = $socket = $server->connect();
            fwrite($socket, "GET /wait?tag=$tag HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        }
        self::awaitTask($server, '/wait', 3);
        foreach ($sockets as $socket) {
            $server->get('/open');
        }
        $bodies = array_map(static fn($socket): array => self::json(ServerProcess::readAll($socket)), $sockets);

        self::assertSame(['a', 'b', 'c'], array_column($bodies, 'tag'));
        self::assertSame([1, 2, 3], self::sorted(array_column($bodies, 'kernel')));
    }

    public function testPhpsOwnStateAndSymfonysStaticsBelongToTheRequest(): void
    {
        $server = $this->symfony('Weft\Bridge\Symfony\SymfonyHandler::pool(static fn() => new Application(), size: 3)');
        $sockets = [];
        foreach (['a', 'b', 'c'] as $tag) {
            $sockets[$tag] = $socket = $server->connect();
            fwrite($socket, "GET /php?tag=$tag HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        }
        self::awaitTask($server, '/php', 3);
        foreach ($sockets as $socket) {
            $server->get('/open');
        }

        foreach ($sockets as $tag => $socket) {
            $response = ServerProcess::readAll($socket);
            self::assertStatus(200, $response);
            self::assertStringStartsWith("printed $tag [\"$tag\",\"$tag\",true,true,true,\"X-Php: $tag\"] {\"kernel\"", self::bodyOf($response));
            self::assertSame([$tag, "php=$tag"], [self::field($response, 'x-php'), self::field($response, 'set-cookie')]);
            self::assertTrue($server->awaitLog("shut down $tag"));
        }
    }

    public function testARealmBeginsWithTheTrustedProxiesThatTheProgramHasSet(): void
    {
        $server = $this->symfony('(static function () { Symfony\Component\HttpFoundation\Request::setTrustedProxies(["127.0.0.1"], Symfony\Component\HttpFoundation\Request::HEADER_X_FORWARDED_FOR); return new Weft\Bridge\Symfony\SymfonyHandler(static fn($request) => new Symfony\Component\HttpFoundation\JsonResponse([$request->getClientIp()])); })()');

        self::assertSame('["192.0.2.1"]', self::bodyOf($server->get('/', '-H', 'X-Forwarded-For: 192.0.2.1')));
    }

    public function testKernelsAreMadeWhenTheyAreNeededAndUsedAgain(): void
    {
        $server = $this->symfony('Weft\Bridge\Symfony\SymfonyHandler::pool(static fn() => new Application(), size: 3)');

        for ($time = 0; $time < 3; $time++) {
            self::assertSame(1, self::json($server->get('/'))['kernel']);
            // The answer leaves before the kernel is back.
            Timing::until(static fn(): bool => !str_contains($server->get('/tasks'), 'GET / from'), 'the request has ended');
        }
    }

    public function testAKernelThatAnExceptionCameOutOfIsReplaced(): void
    {
        $server = $this->symfony('Weft\Bridge\Symfony\SymfonyHandler::pool(static fn() => new Application(), size: 1)');

        self::assertStatus(500, $server->get('/fail'));
        self::assertSame(2, self::json($server->get('/'))['kernel']);
        self::assertStatus(200, $server->get('/terminate-fails'));
        self::assertSame(3, self::json($server->get('/'))['kernel']);
    }

    public function testARequestThatWaitsTooLongForAKernelIsA503(): void
    {
        $server = $this->symfony('new Weft\Bridge\Symfony\SymfonyHandler(new Application(), wait: 0.05)');
        $socket = $server->connect();
        fwrite($socket, "GET /wait HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        self::awaitTask($server, '/wait');

        $response = $server->get('/');

        self::assertStatus(503, $response);
        self::assertSame('1', self::field($response, 'retry-after'));
        self::assertStringContainsString('all kernels of the application (1) were busy for 0.05 s', $response);
        $server->get('/open');
        self::assertStringStartsWith('HTTP/1.1 200', ServerProcess::readAll($socket));
        Timing::until(static fn(): bool => str_starts_with($server->get('/'), 'HTTP/1.1 200'), 'the kernel is free again');
    }

    public function testAKernelIsFreeAgainWhenItsClientsHaveGone(): void
    {
        $server = $this->symfony();
        for ($n = 0; $n < 3; $n++) {
            $socket = $server->connect();
            fwrite($socket, "GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
            self::awaitTask($server, '/wait');
            fclose($socket);
        }

        self::assertSame(1, self::json($server->get('/'))['kernel']);
    }

    public function testAStreamIsMadeInItsKernel(): void
    {
        $server = $this->symfony('Weft\Bridge\Symfony\SymfonyHandler::pool(static fn() => new Application(), size: 1)');

        foreach ([1, 2] as $time) {
            self::assertStringContainsString('kernel 1', $server->curl('/stream')[1]);
        }
    }

    /** @return iterable<string, array{string}> what is called after each piece */
    public static function waysToFlush(): iterable
    {
        yield 'flush()' => ['flush();'];
        yield 'ob_flush() and flush()' => ['ob_flush(); flush();'];
        yield 'nothing' => [''];
        yield 'buffers of its own' => ['ob_start(); echo ""; ob_end_flush(); flush();'];
    }

    /** @dataProvider waysToFlush */
    #[DataProvider('waysToFlush')]
    public function testSmallPiecesOfAStreamArriveOneByOne(string $flush): void
    {
        $server = $this->symfony('new Weft\Bridge\Symfony\SymfonyHandler(static fn() => new Symfony\Component\HttpFoundation\StreamedResponse(static function () {
            for ($n = 1; $n <= 3; $n++) { echo "data: "; echo "$n\n\n"; ' . $flush . ' $GLOBALS["gate"]->receive(); }
            echo "end";
        }))');
        $socket = $server->connect();
        fwrite($socket, "GET /events HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");

        // The next piece is made when the one before it has arrived.
        foreach ([1, 2, 3] as $number) {
            self::assertStringContainsString("data: $number\n\n", self::readUntil($socket, "data: $number\n\n"));
            $server->get('/open');
        }
        self::assertStringContainsString('end', self::readUntil($socket, 'end'));
    }

    /** @dataProvider waysToPrint */
    #[DataProvider('waysToPrint')]
    public function testAStreamWaitsForSlowClientsAndTheMemoryOfTheWorkerStaysFlat(string $print): void
    {
        $server = $this->symfony('Weft\Bridge\Symfony\SymfonyHandler::pool(static fn() => static fn($request) => new Symfony\Component\HttpFoundation\StreamedResponse(static function () use ($request) {
            $piece = str_repeat($request->query->get("letter"), 65536);
            $count = $request->query->getInt("pieces");
            ' . $print . '
        }), size: 4)');
        // Code is compiled and buffers have their size.
        self::assertSame(131_072, substr_count($server->get('/?letter=Z&pieces=2'), 'Z'));
        $before = $server->peak();
        $clients = [];
        foreach (['X', 'Y'] as $letter) {
            $clients[$letter] = $client = $server->connect();
            fwrite($client, "GET /?letter=$letter&pieces=1024 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        }
        Timing::until(static fn(): bool => substr_count($server->get('/tasks'), 'an HTTP client to read the response') === 2, 'both streams wait');

        // Others are answered meanwhile.
        self::assertSame(65_536, substr_count($server->get('/?letter=Z&pieces=1'), 'Z'));
        self::assertSame(['X' => [67_108_864, 0], 'Y' => [0, 67_108_864]], self::readSlowly($clients));
        self::assertLessThan(16_384, $server->peak() - $before, 'KiB beyond the start');
        self::assertSame('', $server->log());
    }

    /** Pieces in capital letters. */
    public static function waysToPrint(): iterable
    {
        yield 'echo' => ['for ($n = 0; $n < $count; $n++) { echo $piece; }'];
        yield 'small pieces with waits between them' => ['for ($n = 0; $n < $count * 32; $n++) { echo substr($piece, 0, 2_048); $n % 16 === 0 && usleep(1); }'];
        yield 'a buffer with a callback around the output' => ['ob_start(static fn(string $text): string => strtoupper($text), 8_192); for ($n = 0; $n < $count; $n++) { echo strtolower($piece); } ob_end_flush();'];
        yield 'a buffer that is flushed' => ['ob_start(); for ($n = 0; $n < $count; $n++) { echo $piece; ob_flush(); flush(); } ob_end_clean();'];
        yield 'templates' => ['for ($n = 0; $n < $count; $n++) { ob_start(); echo strtolower($piece); echo strtoupper(ob_get_clean()); }'];
        yield 'in a callback that others call' => ['array_map(static function () use ($piece): void { ob_start(); print($piece); ob_end_flush(); }, range(1, $count));'];
    }

    public function testSlowClientsOfStreamsHoldHalfOfTheKernels(): void
    {
        $server = $this->symfony('Weft\Bridge\Symfony\SymfonyHandler::pool(static fn() => static fn($request) => new Symfony\Component\HttpFoundation\StreamedResponse(static function () use ($request) {
            for ($n = $request->query->getInt("pieces"); $n > 0; $n--) { echo str_repeat("X", 65536); }
            error_log("has printed");
        }), size: 4)');
        // 6 MiB each: more than the kernel buffers, and less than what is queued.
        $clients = [];
        for ($number = 0; $number < 6; $number++) {
            $clients[] = $client = $server->connect();
            fwrite($client, "GET /?pieces=96 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        }

        // No client reads, and four streams have ended.
        Timing::until(static fn(): bool => substr_count($server->log(), 'has printed') === 4, 'streams are queued');
        self::assertSame(2, substr_count($server->get('/tasks'), 'an HTTP client to read the response'));
        self::assertSame(65_536, substr_count($server->get('/?pieces=1'), 'X'));
        self::assertSame(array_fill(0, 6, 6_291_456), array_map(static fn($client): int => substr_count(ServerProcess::readAll($client), 'X'), $clients));
    }

    public function testAFurtherStreamQueuesEightMebibytesBeforeItWaitsAndIsWholeForAClientThatReads(): void
    {
        $server = $this->symfony('Weft\Bridge\Symfony\SymfonyHandler::pool(static fn() => static fn($request) => new Symfony\Component\HttpFoundation\StreamedResponse(static function () use ($request) {
            for ($n = $request->query->getInt("pieces"); $n > 0; $n--) { echo str_repeat("X", 65536); }
        }), size: 4)');
        self::assertSame(131_072, substr_count($server->get('/?pieces=2'), 'X'));
        $before = $server->peak();
        $clients = [];
        for ($number = 1; $number <= 3; $number++) {
            $clients[] = $client = $server->connect();
            fwrite($client, "GET /?pieces=1024 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
            Timing::until(static fn(): bool => substr_count($server->get('/tasks'), 'an HTTP client to read the response') === $number, "$number streams wait");
        }

        // Less than 8 MiB, since the process had memory left.
        Timing::until(static fn(): bool => $server->peak() - $before > 4_096, 'the third one queues');
        self::assertSame(67_108_864, substr_count(ServerProcess::readAll($clients[2]), 'X'));
        self::assertSame(2, substr_count($server->get('/tasks'), 'an HTTP client to read the response'));
        self::assertLessThan(32_768, $server->peak() - $before, 'KiB beyond the start');
        self::assertSame('', $server->log());
    }

    public function testAStreamWhoseClientLeavesWhileItWaitsEndsWithAnException(): void
    {
        $server = $this->symfony('Weft\Bridge\Symfony\SymfonyHandler::pool(static fn() => static fn() => new Symfony\Component\HttpFoundation\StreamedResponse(static function () {
            try {
                while (true) { echo str_repeat("x", 65536); }
            } catch (Throwable $thrown) {
                error_log("ended by " . $thrown::class . " at level " . ob_get_level());
                throw $thrown;
            }
        }), size: 1)');
        for ($round = 1; $round <= 2; $round++) {
            $client = $server->connect();
            fwrite($client, "GET /endless HTTP/1.1\r\nHost: a\r\n\r\n");
            Timing::until(static fn(): bool => str_contains($server->get('/tasks'), 'an HTTP client to read the response'), 'the stream waits');
            fclose($client);
            Timing::until(static fn(): bool => substr_count($server->log(), 'ended by Weft\Http\ClientDisconnectedException at level 0') === $round, 'the stream ends');
        }
        self::assertStringNotContainsString('xxx', $server->log());
    }

    public function testAStreamThatClosesAllOutputBuffersStaysApartFromOtherRequests(): void
    {
        $server = $this->symfony('Weft\Bridge\Symfony\SymfonyHandler::pool(static fn() => static fn($request) => $request->query->has("plain")
            ? new Symfony\Component\HttpFoundation\Response((static function () { ob_start(); echo "plain"; $GLOBALS["gate"]->receive(); return ob_get_clean(); })())
            : new Symfony\Component\HttpFoundation\StreamedResponse(static function () {
                while (ob_get_level() > 0) { ob_end_flush(); }
                echo "first "; flush(); $GLOBALS["gate"]->receive(); echo "second";
            }), size: 2)');
        $stream = $server->connect();
        fwrite($stream, "GET /events HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        self::assertStringContainsString('first', self::readUntil($stream, 'first'));
        $plain = $server->connect();
        fwrite($plain, "GET /?plain HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        self::awaitTask($server, '/');
        $server->get('/open');
        self::assertStringContainsString('second', self::readUntil($stream, 'second'));
        $server->get('/open');

        self::assertSame('plain', self::bodyOf(ServerProcess::readAll($plain)));
        self::assertStringNotContainsString('Discarded', $server->log());
    }

    public function testSymfonysSessionAndPhpsOwnAreOneSessionOfTheRequest(): void
    {
        $server = $this->symfony('Weft\Bridge\Symfony\SymfonyHandler::pool(static fn() => static function ($request) {
            $session = new Symfony\Component\HttpFoundation\Session\Session(new Symfony\Component\HttpFoundation\Session\Storage\NativeSessionStorage(["save_path" => sys_get_temp_dir()]));
            $session->start();
            $session->set("symfony", $session->get("symfony", "") . $request->query->get("tag"));
            $_SESSION["php"] = ($_SESSION["php"] ?? "") . $request->query->get("tag");
            $request->query->has("wait") && $GLOBALS["gate"]->receive();
            $seen = [$session->get("symfony"), $_SESSION["php"], session_id() === $session->getId()];
            $request->query->has("wait") ? session_destroy() : $session->save();
            return new Symfony\Component\HttpFoundation\JsonResponse($seen);
        }, size: 2)');
        $sockets = [];
        foreach (['a', 'b'] as $tag) {
            $first = $server->get("/?tag=$tag");
            self::assertSame([$tag, $tag, true], self::json($first));
            self::assertSame(1, preg_match('/PHPSESSID=([^;]+)/', (string) self::field($first, 'set-cookie'), $found), $first);
            $sockets[$tag] = $socket = $server->connect();
            fwrite($socket, "GET /?tag=$tag&wait HTTP/1.1\r\nHost: a\r\nCookie: PHPSESSID=$found[1]\r\nConnection: close\r\n\r\n");
        }
        self::awaitTask($server, '/', 2);
        foreach ($sockets as $_) {
            $server->get('/open');
        }

        foreach ($sockets as $tag => $socket) {
            self::assertSame(["$tag$tag", "$tag$tag", true], self::json(ServerProcess::readAll($socket)));
        }
    }

    public function testAFactoryThatReturnsOneKernelForTwoRequestsIsRefused(): void
    {
        $server = $this->symfony('(static function () { $one = new Application(); return Weft\Bridge\Symfony\SymfonyHandler::pool(static fn() => $one, size: 2, wait: 0.0); })()');
        $socket = $server->connect();
        fwrite($socket, "GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
        self::awaitTask($server, '/wait');

        self::assertStatus(500, $server->get('/'));
        self::assertTrue($server->awaitLog('returned a kernel again'));
    }

    public function testSizesAndWaitsThatMeanNothingAreRefused(): void
    {
        foreach ([[0, 1.0, '$size 0'], [1, -1.0, '$wait -1'], [1, NAN, '$wait NAN']] as [$size, $wait, $named]) {
            try {
                \Weft\Bridge\Symfony\SymfonyHandler::pool(static fn() => null, $size, $wait);
                self::fail($named);
            } catch (\ValueError $error) {
                self::assertStringContainsString($named, $error->getMessage());
            }
        }
    }

    /**
     * Reads from clients in turn, with pauses, until the server has closed all.
     *
     * @param array<string, resource> $clients
     *
     * @return array<string, list<int>> of each client: how often it has got each of their letters
     */
    private static function readSlowly(array $clients): array
    {
        $read = array_map(static fn(): array => array_fill(0, count($clients), 0), $clients);
        for ($open = $clients, $turn = 0; $open !== []; $turn++) {
            foreach ($open as $letter => $client) {
                stream_set_timeout($client, (int) Timing::DEADLINE);
                $text = (string) fread($client, 262_144);
                foreach (array_keys($clients) as $place => $counted) {
                    $read[$letter][$place] += substr_count($text, $counted);
                }
                if ($text === '' || feof($client)) {
                    unset($open[$letter]);
                }
            }
            $turn % 64 === 0 && usleep(10_000);
        }

        return $read;
    }

    /** @param resource $socket */
    private static function readUntil($socket, string $end): string
    {
        stream_set_timeout($socket, (int) Timing::DEADLINE);
        $read = '';
        while (!str_contains($read, $end) && !feof($socket)) {
            $read .= $piece = (string) fread($socket, 8192);
            if ($piece === '') {
                break;
            }
        }

        return $read;
    }

    /** @param list<string> $extensions of PHP that the application needs */
    private function symfony(string $handler = 'new Weft\Bridge\Symfony\SymfonyHandler(new Application())', array $extensions = []): ServerProcess
    {
        $library = '/usr/share/php/Symfony/Component/HttpKernel/autoload.php';
        if (!is_file($library) && !is_file(\dirname(__DIR__, 2) . '/vendor/autoload.php')) {
            self::markTestSkipped('Symfony is not installed: scripts/setup test');
        }
        $load = is_file($library) ? "require_once '$library';\nrequire_once '/usr/share/php/Symfony/Component/DependencyInjection/autoload.php';\n" : '';
        $tasks = '$routes->get("/tasks", static fn() => Response::text(implode("\n", tasks())));';

        return $this->serve("$load eval(" . var_export(self::KERNEL_HEAD . self::KERNEL, true) . ");\n$tasks\n\$routes->fallback($handler);", extensions: $extensions);
    }

    /** @return list<array<string, mixed>> answers to that many requests at once, tagged 0, 1, … in their order */
    private static function together(ServerProcess $server, string $path, int $count): array
    {
        $sockets = [];
        for ($tag = 0; $tag < $count; $tag++) {
            $sockets[] = $socket = $server->connect();
            fwrite($socket, "GET $path?tag=$tag HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        }

        return array_map(static fn($socket): array => self::json(ServerProcess::readAll($socket)), $sockets);
    }

    private static function awaitTask(ServerProcess $server, string $path, int $count = 1): void
    {
        Timing::until(static fn(): bool => substr_count($server->get('/tasks'), "GET $path from") >= $count, "a task of $path");
    }

    /** @param list<int> $numbers */
    private static function sorted(array $numbers): array
    {
        sort($numbers);

        return $numbers;
    }

    /** @return array<string, mixed> */
    private static function json(string $response): array
    {
        return json_decode(self::bodyOf($response), true, flags: JSON_THROW_ON_ERROR);
    }
}
