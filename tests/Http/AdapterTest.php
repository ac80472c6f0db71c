<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

use PHPUnit\Framework\Attributes\DataProvider;

/** Applications written for other interfaces, over real HTTP. */
final class AdapterTest extends HttpTestCase
{
    private const PSR = <<<'PHP'
        $psr17 = new Nyholm\Psr7\Factory\Psr17Factory();
        $echo = static function (Psr\Http\Message\ServerRequestInterface $request) use ($psr17) {
            $seen = [
                $request->getMethod(), (string) $request->getUri(), $request->getProtocolVersion(), $request->getQueryParams(), $request->getCookieParams(),
                $request->getParsedBody(), (string) $request->getBody(), $request->getHeader("x-two"), $request->getAttribute("id"), $request->getServerParams()["REMOTE_ADDR"],
            ];
            return $psr17->createResponse(201)->withHeader("X-Many", ["a", "b"])->withBody($psr17->createStream(json_encode($seen, JSON_UNESCAPED_SLASHES)));
        };
        PHP;

    private ?Directory $directory = null;

    protected function tearDown(): void
    {
        parent::tearDown();
        $this->directory?->remove();
    }

    public function testAPsr7ApplicationSeesTheWholeRequestAndItsAnswerIsSent(): void
    {
        $server = $this->serve(self::load('Nyholm/Psr7') . self::PSR . '$routes->post("/people/{id}", new Weft\Http\PsrHandler($echo, $psr17, $psr17));');

        $response = $server->get('/people/7?q=a+b&l[]=1', '-d', 'name=Ana', '-H', 'X-Two: 1', '-H', 'X-Two: 2', '-b', 'c=d');

        self::assertStatus(201, $response);
        self::assertStringContainsString("x-many: a\r\nx-many: b\r\n", $response);
        self::assertSame(
            ['POST', "http://$server->address/people/7?q=a+b&l%5B%5D=1", '1.1', ['q' => 'a b', 'l' => ['1']], ['c' => 'd'], ['name' => 'Ana'], 'name=Ana', ['1', '2'], '7', '127.0.0.1'],
            json_decode(self::bodyOf($response), true),
        );
    }

    public function testAPsr7ApplicationSeesTheCookieFieldsOfHttp2AsOneField(): void
    {
        $server = $this->serve(self::load('Nyholm/Psr7') . '$psr17 = new Nyholm\Psr7\Factory\Psr17Factory(); $routes->fallback(new Weft\Http\PsrHandler(static fn(Psr\Http\Message\ServerRequestInterface $request) => $psr17->createResponse(200)->withBody($psr17->createStream($request->getHeaderLine("cookie") . " " . $request->getServerParams()["HTTP_COOKIE"])), $psr17, $psr17));');

        self::assertSame('a=1; b=2 a=1; b=2', self::bodyOf($server->get('/', '--http2-prior-knowledge', '-H', 'Cookie: a=1', '-H', 'cookie: b=2')));
    }

    public function testAPsr15RequestHandlerAnswersWhatNoRouteIsFor(): void
    {
        // No package of Debian 12 has the interface.
        $interface = 'eval(\'namespace Psr\Http\Server; interface RequestHandlerInterface { public function handle(\Psr\Http\Message\ServerRequestInterface $request): \Psr\Http\Message\ResponseInterface; }\');';
        $server = $this->serve(self::load('Nyholm/Psr7') . $interface . self::PSR . <<<'PHP'
            $handler = new class ($echo) implements Psr\Http\Server\RequestHandlerInterface {
                public function __construct(private Closure $echo) {}
                public function handle(Psr\Http\Message\ServerRequestInterface $request): Psr\Http\Message\ResponseInterface { delay(0.01); return ($this->echo)($request); }
            };
            $routes->fallback(new Weft\Http\PsrHandler($handler, $psr17, $psr17));
            PHP);

        self::assertStatus(201, $server->get('/anything', '--http2-prior-knowledge'));
    }

    public function testAPsr7ApplicationSeesTheServerParametersAndCredentials(): void
    {
        $server = $this->serve(self::load('Nyholm/Psr7') . '$psr17 = new Nyholm\Psr7\Factory\Psr17Factory();'
            . '$routes->fallback(new Weft\Http\PsrHandler(static fn($request) => $psr17->createResponse()->withBody($psr17->createStream(json_encode($request->getServerParams()))), $psr17, $psr17));');

        $seen = json_decode(self::bodyOf($server->get('/a?b=c', '-u', 'ana:se:cret', '-A', 'test/1.0', '-H', 'Proxy: http://evil/', '-H', 'X_Real_IP: 10.0.0.1')), true);

        $expected = ['GET', '/a?b=c', 'b=c', 'ana', 'se:cret', 'test/1.0', $server->address, '127.0.0.1', null, null];
        $names = ['REQUEST_METHOD', 'REQUEST_URI', 'QUERY_STRING', 'PHP_AUTH_USER', 'PHP_AUTH_PW', 'HTTP_USER_AGENT', 'HTTP_HOST', 'SERVER_NAME', 'HTTP_PROXY', 'HTTP_X_REAL_IP'];
        self::assertSame($expected, array_map(static fn(string $name): mixed => $seen[$name] ?? null, $names));
    }

    public function testARequestThatAPsr7LibraryRefusesIsAnsweredWith400(): void
    {
        $server = $this->serve(self::load('Nyholm/Psr7') . self::PSR . <<<'PHP'
            $strict = new class ($psr17) implements Psr\Http\Message\ServerRequestFactoryInterface {
                public function __construct(private $psr17) {}
                public function createServerRequest(string $method, $uri, array $serverParams = []): Psr\Http\Message\ServerRequestInterface {
                    return str_contains((string) $uri, "\\") ? throw new InvalidArgumentException("a backslash") : $this->psr17->createServerRequest($method, $uri, $serverParams);
                }
            };
            $routes->fallback(new Weft\Http\PsrHandler($echo, $strict, $psr17));
            PHP);

        self::assertStringStartsWith('HTTP/1.1 400', $server->exchange("GET /a\\b HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
        self::assertStringNotContainsString('failed', $server->log());
    }

    public function testARequestOfHttp10WithoutAHostReachesAPsr7Application(): void
    {
        $server = $this->serve(self::load('Nyholm/Psr7') . '$psr17 = new Nyholm\Psr7\Factory\Psr17Factory();'
            . '$routes->fallback(new Weft\Http\PsrHandler(static fn($request) => $psr17->createResponse()->withBody($psr17->createStream($request->getUri() . " " . json_encode(array_intersect_key($request->getServerParams(), ["HTTP_HOST" => 1, "SERVER_NAME" => 1])))), $psr17, $psr17));');

        $response = $server->exchange("GET /health HTTP/1.0\r\n\r\n");

        self::assertStatus(200, $response);
        self::assertSame('http://localhost/health {"SERVER_NAME":"localhost"}', self::bodyOf($response));
    }

    /** @dataProvider authorities */
    #[DataProvider('authorities')]
    public function testAPsr7ApplicationSeesOneHost(\Closure $ask): void
    {
        $server = $this->serve(self::load('Nyholm/Psr7') . <<<'PHP'
            $psr17 = new Nyholm\Psr7\Factory\Psr17Factory();
            $routes->fallback(new Weft\Http\PsrHandler(static function (Psr\Http\Message\ServerRequestInterface $request) use ($psr17) {
                $parameters = $request->getServerParams();
                $uri = $request->getUri();
                $seen = [(string) $uri, $uri->getHost(), $request->getHeaderLine("host"), $parameters["HTTP_HOST"], $parameters["SERVER_NAME"]];
                return $psr17->createResponse()->withBody($psr17->createStream(json_encode($seen, JSON_UNESCAPED_SLASHES)));
            }, $psr17, $psr17));
            PHP);

        self::assertSame('["http://internal:81/a","internal","internal:81","internal:81","internal"]', self::bodyOf($ask($server)));
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

    public function testALargePsr7BodyArrivesWhole(): void
    {
        $server = $this->serve(self::load('Nyholm/Psr7') . self::PSR . '$routes->get("/", new Weft\Http\PsrHandler(static fn() => $psr17->createResponse()->withBody($psr17->createStream(str_repeat("0123456789", 100_000))), $psr17, $psr17));');

        self::assertSame(str_repeat('0123456789', 100_000), self::bodyOf($server->get('/')));
    }

    public function testASlimApplicationAnswers(): void
    {
        $server = $this->serve(self::load('Nyholm/Psr7') . self::load('Slim') . <<<'PHP'
            $psr17 = new Nyholm\Psr7\Factory\Psr17Factory();
            $slim = new Slim\App();
            $slim->get("/hello/{name}", function ($request, $response, array $arguments) { delay(0.01); $response->getBody()->write("Hello " . $arguments["name"]); return $response->withHeader("x-slim", "3"); });
            $routes->fallback(new Weft\Http\PsrHandler(static fn($request) => $slim->process($request, $psr17->createResponse()), $psr17, $psr17));
            PHP);

        $response = $server->get('/hello/Ana');
        self::assertStatus(200, $response);
        self::assertStringContainsString("x-slim: 3\r\n", $response);
        self::assertSame('Hello Ana', self::bodyOf($response));
        self::assertStatus(404, $server->get('/nothing'));
    }

    public function testASymfonyKernelAnswersWithItsRoutesSessionsAsideAndStreams(): void
    {
        $server = $this->serve(self::load('Symfony/Component/HttpKernel') . self::load('Symfony/Component/Routing') . <<<'PHP'
            use Symfony\Component\HttpFoundation as Http;
            use Symfony\Component\Routing\Route;
            $paths = new Symfony\Component\Routing\RouteCollection();
            $paths->add("person", new Route("/people/{id}", ["_controller" => static function (Http\Request $request, int $id) { delay(0.01); $r = new Http\JsonResponse([$id, $request->query->all(), $request->request->all(), $request->getContent(), $request->headers->get("x-one"), $request->cookies->all(), $request->getClientIp()], 202); $r->headers->setCookie(Http\Cookie::create("seen", "1")); return $r; }]));
            $paths->add("stream", new Route("/stream", ["_controller" => static fn() => new Http\StreamedResponse(static function () { foreach (range(1, 3) as $n) { echo "piece $n;"; flush(); } })]));
            $events = new Symfony\Component\EventDispatcher\EventDispatcher();
            $stack = new Http\RequestStack();
            $events->addSubscriber(new Symfony\Component\HttpKernel\EventListener\RouterListener(new Symfony\Component\Routing\Matcher\UrlMatcher($paths, new Symfony\Component\Routing\RequestContext()), $stack));
            $kernel = new Symfony\Component\HttpKernel\HttpKernel($events, new Symfony\Component\HttpKernel\Controller\ControllerResolver(), $stack);
            $routes->fallback(new Weft\Bridge\Symfony\SymfonyHandler($kernel));
            PHP);

        $response = $server->get('/people/7?q=a', '-d', 'name=Ana', '-H', 'X-One: 1', '-b', 'c=d');
        self::assertStatus(202, $response);
        self::assertStringContainsString('set-cookie: seen=1;', $response);
        self::assertSame([7, ['q' => 'a'], ['name' => 'Ana'], 'name=Ana', '1', ['c' => 'd'], '127.0.0.1'], json_decode(self::bodyOf($response), true));
        $stream = $server->get('/stream');
        self::assertStatus(200, $stream);
        self::assertStringContainsString('piece 1;piece 2;piece 3;', $server->curl('/stream')[1]);
    }

    public function testALumenApplicationAnswers(): void
    {
        $this->directory = new Directory();
        $server = $this->serve('error_reporting(E_ALL & ~E_DEPRECATED); foreach (["mbstring", "ctype", "tokenizer"] as $needed) { extension_loaded($needed) || dl($needed); }' . self::load('Laravel/Lumen') . str_replace('DIRECTORY', var_export($this->directory->path, true), <<<'PHP'
            // It makes a directory for its storage there.
            $lumen = new Laravel\Lumen\Application(DIRECTORY);
            $lumen->router->post("/people/{id}", function (Illuminate\Http\Request $request, $id) { delay(0.01); return response()->json([$id, $request->input("name"), $request->query("q"), $request->file("photo")?->getClientOriginalName()], 201); });
            $routes->fallback(new Weft\Bridge\Symfony\SymfonyHandler($lumen->handle(...)));
            PHP), ', limits: new Limits(inFlight: 1)');

        $response = $server->get('/people/7?q=a', '-F', 'name=Ana', '-F', 'photo=x;filename=a.png');
        self::assertStatus(201, $response);
        self::assertSame(['7', 'Ana', 'a', 'a.png'], json_decode(self::bodyOf($response), true));
        self::assertStatus(404, $server->get('/nothing'));
        self::assertStatus(405, $server->get('/people/7'));
    }

    public function testUploadsReachApplicationsOfBothKinds(): void
    {
        $server = $this->serve(self::load('Nyholm/Psr7') . self::load('Symfony/Component/HttpKernel') . <<<'PHP'
            $psr17 = new Nyholm\Psr7\Factory\Psr17Factory();
            $routes->post("/psr", new Weft\Http\PsrHandler(static function ($request) use ($psr17) {
                $file = $request->getUploadedFiles()["files"]["a"][0];
                $seen = [$request->getParsedBody(), $file->getClientFilename(), $file->getClientMediaType(), $file->getSize(), (string) $file->getStream()];
                return $psr17->createResponse()->withBody($psr17->createStream(json_encode($seen)));
            }, $psr17, $psr17));
            $routes->post("/symfony", new Weft\Bridge\Symfony\SymfonyHandler(static function ($request) {
                $file = $request->files->all()["files"]["a"][0];
                $seen = [$request->request->all(), $file->getClientOriginalName(), $file->getClientMimeType(), $file->getSize()];
                $moved = $file->move(sys_get_temp_dir(), "weft-" . bin2hex(random_bytes(8)));
                $seen[] = file_get_contents($moved->getPathname());
                unlink($moved->getPathname());
                return new Symfony\Component\HttpFoundation\JsonResponse($seen);
            }));
            PHP);

        foreach (['/psr', '/symfony'] as $path) {
            $response = $server->get($path, '-F', 'title=T', '-F', 'files[a][]=hello;filename=b.txt;type=text/x-b');
            self::assertSame([['title' => 'T'], 'b.txt', 'text/x-b', 5, 'hello'], json_decode(self::bodyOf($response), true), $response . $server->log());
        }
    }

    private static function load(string $library): string
    {
        $file = "/usr/share/php/$library/autoload.php";
        if (!is_file($file) && !is_file(\dirname(__DIR__, 2) . '/vendor/autoload.php')) {
            self::markTestSkipped("$library is not installed: scripts/setup test");
        }

        return is_file($file) ? "require_once '$file';\n" : '';
    }
}
