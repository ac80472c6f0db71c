<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

/** PSR-15 middleware around Weft's routes. */
final class PsrMiddlewareTest extends HttpTestCase
{
    /** The interfaces, which no package of Debian 12 has, and a middleware that does what the test says. */
    private const HEAD = <<<'PHP'
        require_once "/usr/share/php/Nyholm/Psr7/autoload.php";
        eval('namespace Psr\Http\Server; interface RequestHandlerInterface { public function handle(\Psr\Http\Message\ServerRequestInterface $request): \Psr\Http\Message\ResponseInterface; } interface MiddlewareInterface { public function process(\Psr\Http\Message\ServerRequestInterface $request, RequestHandlerInterface $handler): \Psr\Http\Message\ResponseInterface; }');
        eval('final class Through implements Psr\Http\Server\MiddlewareInterface { public function __construct(private Closure $do) {} public function process(Psr\Http\Message\ServerRequestInterface $request, Psr\Http\Server\RequestHandlerInterface $handler): Psr\Http\Message\ResponseInterface { return ($this->do)($request, $handler); } }');
        $psr17 = new Nyholm\Psr7\Factory\Psr17Factory();
        $psr = static fn(Closure $do) => new Weft\Http\PsrMiddleware(new Through($do), $psr17, $psr17, $psr17);
        PHP;

    public function testItChangesTheResponseAndPassesAttributesOn(): void
    {
        $server = $this->serve(self::HEAD . <<<'PHP'
            $routes->use($psr(static fn($request, $handler) => $handler->handle($request->withAttribute("user", $request->getHeaderLine("x-user")))->withHeader("x-psr", "yes")))
                ->post("/{id}", static fn(Request $request, int $id) => ["id" => $id, "user" => $request->attribute("user"), "body" => $request->body()]);
            PHP);

        $response = $server->get('/7', '-X', 'POST', '-d', 'text', '-H', 'x-user: ada');

        self::assertStatus(200, $response);
        self::assertSame(['yes', 'application/json'], [self::field($response, 'x-psr'), self::field($response, 'content-type')]);
        self::assertSame('{"id":7,"user":"ada","body":"text"}', self::bodyOf($response));
    }

    public function testItAnswersItselfAndSeesFailuresAsResponses(): void
    {
        $server = $this->serve(self::HEAD . <<<'PHP'
            $routes->get("/closed", static fn() => throw new LogicException("not called"), $psr(static fn($request, $handler) => $psr17->createResponse(503)->withBody($psr17->createStream("closed"))))
                ->get("/missing", static fn() => throw new NotFoundException("no such thing"), $psr(static fn($request, $handler) => $handler->handle($request)->withHeader("x-seen", "404")));
            PHP);

        $closed = $server->get('/closed');
        self::assertStatus(503, $closed);
        self::assertSame('closed', self::bodyOf($closed));
        $missing = $server->get('/missing');
        self::assertStatus(404, $missing);
        self::assertSame('404', self::field($missing, 'x-seen'));
        self::assertSame("no such thing\n", self::bodyOf($missing));
    }

    public function testAStreamAndAFilePassByAndABodyCanBeReplaced(): void
    {
        $server = $this->serve(self::HEAD . <<<'PHP'
            $routes->use($psr(static fn($request, $handler) => $handler->handle($request)))
                ->get("/stream", static fn() => Response::stream(["a", "b"]))
                ->get("/file", static fn() => Response::file(__FILE__, "text/plain"))
                ->get("/shout", static fn() => Response::text("loud"), $psr(static function ($request, $handler) use ($psr17) { $response = $handler->handle($request); return $response->withBody($psr17->createStream(strtoupper((string) $response->getBody()))); }));
            PHP);

        self::assertSame('ab', $server->curl('/stream')[1]);
        self::assertStringStartsWith('<?php', $server->curl('/file')[1]);
        self::assertStatus(206, $server->get('/file', '-r', '0-4'));
        self::assertSame('LOUD', $server->curl('/shout')[1]);
    }
}
