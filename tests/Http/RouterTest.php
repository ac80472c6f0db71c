<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

final class RouterTest extends HttpTestCase
{
    public function testANameInAPathIsGivenToTheParameterOfThatName(): void
    {
        $server = $this->serve('$routes->get("/people/{id}/books/{title}", static fn(string $title, int $id) => Response::json([$id, $title]));');

        self::assertSame('[7,"a/b"]', self::bodyOf($server->get('/people/7/books/a%2Fb')));
        self::assertStatus(404, $server->get('/people/x/books/b'));
        self::assertStatus(404, $server->get('/people/7/books/a/b'));
    }

    public function testAConstraintDecidesWhatANameStandsFor(): void
    {
        $server = $this->serve('$routes->get("/{year:\d{4}}/{rest:(a|b)+}", static fn(string $year, string $rest) => Response::text("$year-$rest"))->get("/files/{path:.+}", static fn(string $path) => Response::text($path));');

        self::assertSame('2024-abba', self::bodyOf($server->get('/2024/abba')));
        self::assertStatus(404, $server->get('/24/a'));
        self::assertSame('a/b/c', self::bodyOf($server->get('/files/a/b/c')));
    }

    public function testAPathWithoutNamesWinsAndAnotherMethodIsFoundBehindIt(): void
    {
        $server = $this->serve('$routes->get("/people/{id}", static fn(string $id) => Response::text("one"))->get("/people/new", static fn() => Response::text("form"))->post("/people/{name:[a-z]+}", static fn(string $name) => Response::text("stored"));');

        self::assertSame('form', self::bodyOf($server->get('/people/new')));
        self::assertSame('one', self::bodyOf($server->get('/people/ada')));
        self::assertSame('stored', self::bodyOf($server->get('/people/new', '-X', 'POST')));
    }

    public function testAnUnknownPathIs404AndAnotherMethod405WithAllow(): void
    {
        $server = $this->serve('$routes->get("/a", static fn() => Response::text(""))->put("/a", static fn() => Response::text(""));');

        self::assertStatus(404, $server->get('/b'));
        $refused = $server->get('/a', '-X', 'DELETE');
        self::assertStatus(405, $refused);
        self::assertStringContainsString("allow: GET, PUT, HEAD, OPTIONS\r\n", $refused);
        $options = $server->get('/a', '-X', 'OPTIONS');
        self::assertStatus(204, $options);
        self::assertStringContainsString("allow: GET, PUT, HEAD, OPTIONS\r\n", $options);
    }

    public function testHeadIsAnsweredByGetWithoutItsBody(): void
    {
        $server = $this->serve('$routes->get("/", static fn() => Response::text("hello"));');

        foreach (['--http1.1', '--http2-prior-knowledge'] as $protocol) {
            $response = $server->get('/', '--head', $protocol);
            self::assertStatus(200, $response);
            self::assertStringContainsString("content-length: 5\r\n", $response);
            self::assertSame('', self::bodyOf($response));
        }
    }

    public function testMiddlewareIsAroundItsGroupTheOuterOneFirst(): void
    {
        $server = $this->serve(<<<'PHP'
            $mark = static fn(string $name) => static fn(Request $request, Closure $next) => Response::text("$name(" . $next($request)->body . ")");
            $routes->use($mark("all"))
                ->get("/out", static fn() => Response::text("out"))
                ->group("/in", static fn(Router $group) => $group->get("/side", static fn() => Response::text("inside"), $mark("route")), $mark("group"));
            PHP);

        self::assertSame('all(out)', self::bodyOf($server->get('/out')));
        self::assertSame('all(group(route(inside)))', self::bodyOf($server->get('/in/side')));
    }

    public function testAMalformedRouteIsRefusedWhenItIsMade(): void
    {
        foreach (
            [
                ['no-slash', static fn() => null],
                ['/{a}/{a}', static fn() => null],
                ['/{a:(}', static fn() => null],
                ['/{a}', static fn(string $b) => null],
                ['/{a}', static fn(\DateTime $a) => null],
            ] as [$path, $handler]
        ) {
            try {
                (new \Weft\Http\Router())->get($path, $handler)->handler();
                self::fail("$path was taken");
            } catch (\ValueError $error) {
                self::assertStringContainsString($path, $error->getMessage());
            }
        }
    }
}
