<?php

declare(strict_types=1);

namespace Weft\Tests\Http;

use PHPUnit\Framework\Attributes\DataProvider;
use Weft\Http\Internal\Routing\Route;
use Weft\Http\InvalidRouteError;
use Weft\Http\Response;
use Weft\Http\Router;

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

    public function testAPathIsFoundAsItIsWrittenAndPercentEncoded(): void
    {
        $server = $this->serve('$routes->get("/café", static fn() => Response::text("coffee"))->get("/a|b/{id}", static fn(string $id) => Response::text($id))->get("/x|y", static fn() => new ArrayObject());');

        foreach (['--http1.1', '--http2-prior-knowledge'] as $protocol) {
            foreach (['/café', '/caf%C3%A9', '/caf%c3%a9'] as $path) {
                self::assertSame('coffee', self::bodyOf($server->get($path, $protocol)), "$protocol $path");
            }
            foreach (['/a|b/c|d', '/a%7Cb/c%7Cd', '/a%7cb/c|d'] as $path) {
                self::assertSame('c|d', self::bodyOf($server->get($path, $protocol)), "$protocol $path");
            }
        }
        self::assertStringContainsString("allow: GET, HEAD, OPTIONS\r\n", $server->get('/a%7cb/c', '-X', 'DELETE'));
        self::assertStatus(404, $server->get('/%61|b/c'));
        self::assertStatus(500, $server->get('/x|y'));
        self::assertTrue($server->awaitLog('of "/x|y"'));
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

    public function testARouteIsNamedAndItsPathIsBuilt(): void
    {
        $admin = (new Router())->get('/{user:\d+}', static fn(int $user) => null)->named('user');
        $router = (new Router())
            ->get('/', static fn() => null)->named('home')
            ->group('/shop', static fn(Router $group) => $group->get('/{item}', static fn(string $item) => null)->named('item'))
            ->mount('/admin', $admin);

        self::assertSame('/', $router->url('home'));
        self::assertSame('/shop/a%20b?page=2', $router->url('item', ['item' => 'a b', 'page' => 2]));
        self::assertSame('/admin/7', $admin->url('user', ['user' => 7]));
        $this->expectExceptionMessage('No route is named "nobody"; there are: home, item, user');
        $router->url('nobody');
    }

    public function testASubRouterAnswersBelowItsPrefixInsideItsMiddleware(): void
    {
        $server = $this->serve(<<<'PHP'
            $mark = static fn(string $name) => static fn(Request $request, Closure $next) => Response::text("$name(" . $next($request)->body . ")");
            $api = (new Router())->use($mark("api"))->get("/people/{id}", static fn(int $id) => Response::text("person $id"));
            $api->group("/deep", static fn(Router $group) => $group->get("/er", static fn() => Response::text("deeper")), $mark("deep"));
            $routes->mount("/v1", $api, $mark("v1"));
            $api->get("/late", static fn() => Response::text("late"));
            PHP);

        self::assertSame('v1(api(person 7))', self::bodyOf($server->get('/v1/people/7')));
        self::assertSame('v1(api(deep(deeper)))', self::bodyOf($server->get('/v1/deep/er')));
        self::assertSame('v1(api(late))', self::bodyOf($server->get('/v1/late')));
        self::assertStatus(404, $server->get('/people/7'));
    }

    public function testRoutesAddedLaterReachTheOutermostRouterThroughMountsAndGroups(): void
    {
        $group = null;
        $books = (new Router())->get('/{id}', static fn(int $id) => null)->named('book');
        $books->group('/old', static function (Router $old) use (&$group): void {
            $group = $old->get('/', static fn() => null);
        });
        $shop = (new Router())->mount('/books', $books);
        $root = (new Router())->mount('/shop', $shop);
        $group->named('old');
        $group->get('/later', static fn() => null)->named('older');
        $books->get('/new/later', static fn() => null)->named('later');

        $paths = ['/shop/books/{id}', '/shop/books/old/', '/shop/books/old/later', '/shop/books/new/later'];
        self::assertSame($paths, \array_map(static fn(Route $route): string => $route->pattern->path, $root->routes()));
        foreach ([$root, $shop, $books, $group] as $router) {
            self::assertSame('/shop/books/7', $router->url('book', ['id' => 7]));
            self::assertSame('/shop/books/old/', $router->url('old'));
            self::assertSame('/shop/books/old/later', $router->url('older'));
            self::assertSame('/shop/books/new/later', $router->url('later'));
        }
    }

    public function testARouterIsNotMountedInItself(): void
    {
        $outer = new Router();
        $inner = new Router();
        $outer->mount('/inner', $inner);

        $this->expectException(InvalidRouteError::class);

        $inner->mount('/outer', $outer);
    }

    public function testTheRouteOfARequestIsNullWhereItsPathHasNoParameters(): void
    {
        $server = $this->serve(<<<'PHP'
            $answer = static fn(Request $request) => (new Response(200, [], ""))->withHeader("x-route", $request->route ?? "none");
            $routes->get("/fixed", $answer)->get("/people/{id}", $answer)->get("/people/me", $answer);
            PHP);

        foreach (['/fixed' => 'none', '/people/me' => 'none', '/people/7' => '/people/{id}'] as $path => $route) {
            self::assertSame($route, self::field($server->get($path), 'x-route'));
            self::assertSame($route, self::field($server->get($path, '--head'), 'x-route'));
        }
    }

    public function testTheMiddlewareOfAGroupIsAroundItsAnswerToOptions(): void
    {
        $server = $this->serve(<<<'PHP'
            $stamp = static fn(Request $request, Closure $next) => $next($request)->withHeader("x-group", "yes");
            $routes->group("/in", static fn(Router $group) => $group->get("/{id}", static fn(string $id) => Response::text($id))->post("/{id}", static fn(string $id) => Response::text($id)), $stamp);
            PHP);

        $options = $server->get('/in/7', '-X', 'OPTIONS');

        self::assertStatus(204, $options);
        self::assertSame('yes', self::field($options, 'x-group'));
        self::assertSame('GET, POST, OPTIONS, HEAD', self::field($options, 'allow'));
    }

    public function testARouteThatNothingCouldReachIsRefusedAndBothAreNamed(): void
    {
        $line = __LINE__ + 1;
        $router = (new Router())->get('/people/{id}', static fn(string $id) => null);
        $refused = [
            ['GET', '/people/{name}', 'GET /people/{name} has a handler already'],
            ['GET', '/people/{id:\d+}', 'can never be reached'],
        ];
        foreach ($refused as [$method, $path, $message]) {
            try {
                $router->route([$method], $path, static fn() => null);
                self::fail("$path was taken");
            } catch (InvalidRouteError $error) {
                self::assertStringContainsString($message, $error->getMessage());
                self::assertStringContainsString("GET /people/{id} (Closure " . __FILE__ . ":$line)", $error->getMessage());
                self::assertStringContainsString("GET $path (Closure " . __FILE__ . ':' . __LINE__ - 5 . ')', $error->getMessage());
            }
        }
        $router->post('/people/{id:\d+}', static fn() => null)->get('/people/new', static fn() => null);
        self::assertCount(3, $router->routes());
    }

    /** @dataProvider notCallable */
    #[DataProvider('notCallable')]
    public function testWhatIsNotCallableIsRefusedWithWhatToWrite(mixed $handler, string $problem): void
    {
        $adds = [
            'The handler of "/shop/a"' => static fn(Router $router): Router => $router->group('/shop', static fn(Router $shop): Router => $shop->get('/a', $handler)),
            'The handler of "/b"' => static fn(Router $router): Router => $router->websocket('/b', $handler),
            'The middleware of "/c"' => static fn(Router $router): Router => $router->get('/c', static fn() => null, $handler),
            'The fallback' => static fn(Router $router): Router => $router->fallback($handler),
            'Middleware' => static fn(Router $router): Router => $router->use($handler),
        ];
        foreach ($adds as $role => $add) {
            try {
                $add(new Router());
                self::fail('it was taken');
            } catch (InvalidRouteError $error) {
                self::assertSame("$role is $problem", $error->getMessage());
            }
        }
    }

    /** @return iterable<string, array{mixed, string}> */
    public static function notCallable(): iterable
    {
        $class = Controller::class;
        $write = "write [\$controller, 'show'] or \$controller->show(...), where \$controller is an object of $class";
        yield 'class and method' => [[$class, 'show'], "[$class::class, 'show'], and Weft makes no objects: $write"];
        yield 'a class' => [$class, "the name of the class $class, and Weft makes no objects: $write"];
        yield 'a method of Laravel' => ["$class@show", "\"$class@show\": $write"];
        yield 'an object' => [new Controller(), "an object of $class, which has no __invoke(): $write"];
        yield 'no such method' => [[new Controller(), 'list'], "[an object of $class, 'list'], but $class has no method list()"];
        yield 'a private method' => [[new Controller(), 'secret'], "[an object of $class, 'secret'], but $class::secret() is not public"];
        yield 'no such class' => [['Nobody', 'show'], "[Nobody::class, 'show'], but there is no class Nobody"];
        yield 'no function' => ['nobody', '"nobody", which is no function'];
        yield 'null' => [null, 'null, which cannot be called'];
    }

    public function testAMethodOfAnObjectAndAStaticOneAreHandlers(): void
    {
        $router = (new Router())->get('/a', [new Controller(), 'show'])->get('/b', [StaticController::class, 'show'])->get('/c', StaticController::class . '::show');

        self::assertCount(3, $router->routes());
    }

    public function testTwoRoutesCannotHaveOneName(): void
    {
        $this->expectException(InvalidRouteError::class);
        $this->expectExceptionMessage('The name "one" of GET /b');

        (new Router())->get('/a', static fn() => null)->named('one')->get('/b', static fn() => null)->named('one');
    }

    public function testARouterIsMountedOnce(): void
    {
        $sub = new Router();
        $router = (new Router())->mount('/a', $sub);

        $this->expectExceptionMessage('The router to mount at "/b" is mounted');

        $router->mount('/b', $sub);
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
                (new Router())->get($path, $handler);
                self::fail("$path was taken");
            } catch (\ValueError $error) {
                self::assertStringContainsString($path, $error->getMessage());
            }
        }
    }
}

final class Controller
{
    public function show(): Response
    {
        return Response::text('shown');
    }

    private function secret(): Response
    {
        return $this->show();
    }
}

final class StaticController
{
    public static function show(): Response
    {
        return Response::text('shown');
    }
}
