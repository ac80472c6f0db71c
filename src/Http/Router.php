<?php

declare(strict_types=1);

namespace Weft\Http;

use Weft\Http\Internal\Handlers\HandlerCompiler;
use Weft\Http\Internal\Handlers\HandlerPlan;
use Weft\Http\Internal\OpenApi\Document;
use Weft\Http\Internal\Routing\Callback;
use Weft\Http\Internal\Routing\Dispatcher;
use Weft\Http\Internal\Routing\PathPattern;
use Weft\Http\Internal\Routing\Pipeline;
use Weft\Http\Internal\Routing\RequestTimer;
use Weft\Http\Internal\Routing\Route;
use Weft\Http\Internal\Routing\RouteList;
use Weft\Http\Internal\Routing\RouteTable;
use Weft\Http\Internal\StaticDirectory;
use Weft\Http\Internal\WebSocketRoute;
use Weft\Native\HttpStaticDir;
use Weft\Validation\Validator;

/**
 * Maps requests to handlers.
 *
 * ```
 * $router = (new Router())
 *     ->get('/people/{id}', fn (int $id): Person => $people->find($id) ?? throw new NotFoundException())->named('person')
 *     ->post('/people', fn (#[Body] AddPerson $person) => Response::created($router->url('person', ['id' => $people->add($person)])));
 * ```
 *
 * A path may have parameters: `{id}` matches one segment, `{id:\d+}` what the expression matches, `{path:.+}` the rest of the path. Clients may
 * percent-encode `|`, `é` and other characters that a path cannot contain; the route is the same.
 *
 * A handler declares what it needs: the Request by its type, path parameters by their names, and by attributes the {@see Body}, a
 * {@see Query} parameter or a {@see Header} field. Its signature is compiled when the route is added. It returns a Response, an object or an
 * array, which become JSON, or nothing (204).
 *
 * A path without parameters takes precedence; among the others the first one added does. GET handlers also answer HEAD, OPTIONS
 * lists the methods of a path, another method is 405 and an unknown path 404. A route that no request could reach is refused.
 *
 * A middleware receives the Request and the next handler, and returns a Response:
 * `fn (Request $request, \Closure $next): Response => $next($request)->withHeader('x-powered-by', 'Weft')`.
 */
final class Router
{
    /** @var list<\Closure> */
    private array $middleware = [];
    private ?\Closure $fallback = null;
    private ?Validator $validator = null;
    /** The router of which this is a group; null for the outermost. */
    private ?self $parent = null;
    /** The prefix of its paths within the parent. */
    private string $prefix = '';
    /** Its routes while it is the outermost. */
    private RouteList $routes;
    private ?Route $last = null;
    private ?OpenApi $info = null;

    public function __construct()
    {
        $this->routes = new RouteList();
    }

    /**
     * Adds middleware around all routes of this router or group, including routes added earlier. The first is the outermost.
     *
     * @param callable ...$middleware
     *
     * @throws InvalidRouteError it is not callable
     */
    public function use(mixed ...$middleware): self
    {
        foreach ($middleware as $one) {
            $this->middleware[] = Callback::of($one, 'Middleware');
        }

        return $this;
    }

    /** Checks the constraints of `#[Validate]`, in place of symfony/validator. */
    public function validator(Validator $validator): self
    {
        $this->validator = $validator;

        return $this;
    }

    /**
     * @param callable $handler
     * @param callable ...$middleware
     *
     * @throws InvalidRouteError as {@see route()}
     */
    public function get(string $path, mixed $handler, mixed ...$middleware): self
    {
        return $this->route(['GET'], $path, $handler, ...$middleware);
    }

    /**
     * @param callable $handler
     * @param callable ...$middleware
     *
     * @throws InvalidRouteError as {@see route()}
     */
    public function post(string $path, mixed $handler, mixed ...$middleware): self
    {
        return $this->route(['POST'], $path, $handler, ...$middleware);
    }

    /**
     * @param callable $handler
     * @param callable ...$middleware
     *
     * @throws InvalidRouteError as {@see route()}
     */
    public function put(string $path, mixed $handler, mixed ...$middleware): self
    {
        return $this->route(['PUT'], $path, $handler, ...$middleware);
    }

    /**
     * @param callable $handler
     * @param callable ...$middleware
     *
     * @throws InvalidRouteError as {@see route()}
     */
    public function patch(string $path, mixed $handler, mixed ...$middleware): self
    {
        return $this->route(['PATCH'], $path, $handler, ...$middleware);
    }

    /**
     * @param callable $handler
     * @param callable ...$middleware
     *
     * @throws InvalidRouteError as {@see route()}
     */
    public function delete(string $path, mixed $handler, mixed ...$middleware): self
    {
        return $this->route(['DELETE'], $path, $handler, ...$middleware);
    }

    /**
     * @param list<string> $methods
     * @param callable $handler
     * @param callable ...$middleware
     *
     * @throws InvalidRouteError the path is malformed, the handler is not callable or its signature is invalid, or another route takes its
     *     requests
     */
    public function route(array $methods, string $path, mixed $handler, mixed ...$middleware): self
    {
        $pattern = PathPattern::of($this->prefix() . $path);
        $plan = HandlerCompiler::compile(Callback::of($handler, "The handler of \"$pattern->path\""), $pattern->path, $pattern->names);
        $methods = \array_values(\array_unique(\array_map(\strtoupper(...), $methods)));
        if ($methods === []) {
            throw new InvalidRouteError("The route \"$path\" has no methods");
        }
        self::checkBody($methods, $pattern, $plan);

        return $this->add(new Route($methods, $pattern, $plan, self::middleware($pattern, $middleware), $this));
    }

    /**
     * Names the route that was added last, for {@see url()}.
     *
     * @throws InvalidRouteError another route has the name
     */
    public function named(string $name): self
    {
        $this->list()->name($this->last ?? throw new InvalidRouteError("No route to name \"$name\": add one first"), $name);

        return $this;
    }

    /**
     * The path of a named route, of this router or any group of it: `$router->url('person', ['id' => 7, 'tab' => 'books'])` is
     * `/people/7?tab=books`.
     *
     * @param array<string, mixed> $parameters scalars (`true` is 1, `false` is 0), backed enums or Stringable; those that the path does not have
     *     become the query, a list as `tags=a&tags=b`
     *
     * @throws \ValueError no route has the name, a parameter is missing, its value does not match the path, or the path has a segment `.` or `..`
     */
    public function url(string $name, array $parameters = []): string
    {
        return $this->list()->named($name)->pattern->build($parameters);
    }

    /**
     * Serves the files of a directory to GET and HEAD, with conditional and range requests as in `Response::file()`. No path and no
     * symbolic link leads out of the directory. If a text file has a sibling with the suffix `.br`, `.zst` or `.gz`, clients that
     * accept that encoding get the sibling.
     *
     * @param string $path such as `/assets`; empty for all paths without another route
     * @param string $directory resolved now; a symbolic link that changes later has no effect
     * @param callable ...$middleware
     *
     * @throws \ValueError the path is malformed or already has a handler
     * @throws \Error the directory does not exist
     */
    public function static(string $path, string $directory, StaticOptions $options = new StaticOptions(), mixed ...$middleware): self
    {
        $headers = ['cache-control' => $options->cacheControl(), 'x-content-type-options' => 'nosniff'];
        $files = new StaticDirectory(HttpStaticDir::open($directory, $options->hidden), $options->index, $headers);
        $path = \rtrim($path, '/');
        if ($this->prefix() . $path !== '') {
            $this->addOwn($path, StaticDirectory::toDirectory(...), "files of $directory", $middleware);
        }

        return $this->addOwn("$path/{" . StaticDirectory::PATH . ':.*}', $files->answer(...), "files of $directory", $middleware);
    }

    /**
     * A WebSocket endpoint (RFC 6455) over HTTP/1.1 and HTTP/2 (RFC 8441). Middleware sees the handshake request, and the response once the
     * WebSocket has closed.
     *
     * The WebSocket closes when the handler ends: with 1000, or with 1011 if it throws. Tasks that the handler has left running are
     * cancelled.
     *
     * @param callable $handler receives the WebSocket by its type, and the arguments of other handlers
     * @param callable ...$middleware
     *
     * @throws InvalidRouteError the path is malformed, the handler is not callable or its signature is invalid, or another route takes its
     *     requests
     */
    public function websocket(string $path, mixed $handler, WebSocketOptions $options = new WebSocketOptions(), mixed ...$middleware): self
    {
        $pattern = PathPattern::of($this->prefix() . $path);
        $plan = HandlerCompiler::ofWebSocket(Callback::of($handler, "The handler of \"$pattern->path\""), $pattern->path, $pattern->names);

        return $this->add(new Route(['GET'], $pattern, $plan, self::middleware($pattern, $middleware), $this, isDocumented: false, webSocket: $options));
    }

    /**
     * Serves the OpenAPI 3.1 document of all routes: their parameters, bodies, responses and problem details, with the types, defaults and
     * constraints of their signatures and the words of their PHPDoc. `weft openapi app.php` prints it.
     *
     * @throws InvalidRouteError
     */
    public function openApi(string $path, OpenApi $info): self
    {
        $this->info = $info;
        $json = null;

        return $this->addOwn($path, function () use (&$json): Response {
            return new Response(200, ['content-type' => 'application/json'], $json ??= $this->openApiDocument());
        }, 'the OpenAPI document', []);
    }

    /** @internal */
    public function openApiDocument(): string
    {
        return Document::json($this->info ?? new OpenApi('API'), $this->list()->routes);
    }

    /**
     * Adds the routes that `$define` adds under a common prefix, with their own middleware.
     *
     * @param \Closure(self): mixed $define
     * @param callable ...$middleware
     */
    public function group(string $prefix, \Closure $define, mixed ...$middleware): self
    {
        $group = new self();
        $group->attach($this, $prefix);
        $define($group->use(...$middleware));

        return $this;
    }

    /**
     * Adds the routes of another router under a prefix, inside its middleware. Routes that are added to it later are added here as well. Its
     * fallback is not used.
     *
     * @param callable ...$middleware
     *
     * @throws InvalidRouteError it was mounted before, or a route conflicts with one of this router
     */
    public function mount(string $prefix, self $router, mixed ...$middleware): self
    {
        if ($router->parent !== null || $router === $this->outermost()) {
            throw new InvalidRouteError("The router to mount at \"$prefix\" is mounted or is a group already, or is around this router: make a router for each place");
        }
        $group = new self();
        $group->attach($this, $prefix);
        $group->use(...$middleware);
        $router->attach($group, '');
        foreach ($router->routes->routes as $route) {
            $this->list()->add($route->moveBelow($group->prefix()));
        }

        return $this;
    }

    /**
     * Handles requests without a matching route, instead of a 404.
     *
     * @param callable $handler
     *
     * @throws InvalidRouteError it is not callable
     */
    public function fallback(mixed $handler): self
    {
        $this->fallback = Callback::of($handler, 'The fallback');

        return $this;
    }

    /**
     * @internal
     *
     * @return \Closure(Request): mixed
     */
    public function handler(): \Closure
    {
        $table = new RouteTable();
        $fallback = $this->fallback === null ? null : HandlerCompiler::compile($this->fallback, '', [])->closure($this->validator, $this->middleware === []);
        $options = new RouteTable();
        $dispatcher = new Dispatcher($table, $fallback, $options);
        foreach ($this->list()->routes as $route) {
            $table->add($route->pattern, $this->handlersOf($route));
        }
        foreach ($this->list()->routes as $route) {
            $outer = $route->owner->middlewareWithin($this);
            $answer = Pipeline::of($outer, $dispatcher->answerOptions(...));
            $options->add($route->pattern, \array_fill_keys($route->methods, $answer));
            if ($outer !== []) {
                $table->add($route->pattern, ['OPTIONS' => static fn(Request $request): mixed => $dispatcher->dispatchOptions($request, $answer)]);
            }
        }

        return Pipeline::of($this->middleware, $dispatcher->dispatch(...));
    }

    /**
     * @internal
     *
     * @return list<Route> in the order in which they were added
     */
    public function routes(): array
    {
        return $this->list()->routes;
    }

    /**
     * @internal
     *
     * The route that has matched a request, for errors.
     */
    public function routeOf(Request $request): ?Route
    {
        $methods = $request->method() === 'HEAD' ? ['HEAD', 'GET'] : [$request->method()];
        foreach ($this->list()->routes as $route) {
            $isMatch = $request->route === null
                ? $route->pattern->names === [] && $route->pattern->matches($request->path())
                : $route->pattern->path === $request->route;
            if ($isMatch && \array_intersect($methods, $route->methods) !== []) {
                return $route;
            }
        }

        return null;
    }

    /** @return array<string, \Closure(Request): mixed> by method */
    private function handlersOf(Route $route): array
    {
        $middleware = [...$route->owner->middlewareWithin($this), ...$route->middleware];
        $validator = $route->owner->validatorOf();
        $handler = $route->webSocket === null
            ? $route->plan->closure($validator, $middleware === [] && $this->middleware === [])
            : (new WebSocketRoute($route->plan, $route->webSocket, $validator))->open(...);
        if ($middleware !== [] && $route->plan->isTyped) {
            // Before the middleware, whose failures become problem details as well.
            \array_unshift($middleware, static function (Request $request, \Closure $next): mixed {
                $request->answersProblems = true;

                return $next($request);
            });
        }

        return \array_fill_keys($route->methods, RequestTimer::of($route, Pipeline::of($middleware, $handler)));
    }

    /**
     * A route whose handler is Weft's.
     *
     * @param array<mixed> $middleware
     */
    private function addOwn(string $path, \Closure $handler, string $label, array $middleware): self
    {
        $pattern = PathPattern::of($this->prefix() . $path);
        $plan = HandlerCompiler::compile($handler, $pattern->path, $pattern->names, $label);

        return $this->add(new Route(['GET'], $pattern, $plan, self::middleware($pattern, $middleware), $this, isDocumented: false));
    }

    private function add(Route $route): self
    {
        $this->last = $this->list()->add($route);

        return $this;
    }

    /**
     * @param array<mixed> $middleware
     *
     * @return list<\Closure>
     */
    private static function middleware(PathPattern $pattern, array $middleware): array
    {
        return \array_map(static fn(mixed $one): \Closure => Callback::of($one, "The middleware of \"$pattern->path\""), \array_values($middleware));
    }

    /** @param list<string> $methods */
    private static function checkBody(array $methods, PathPattern $pattern, HandlerPlan $plan): void
    {
        $withoutBody = \array_values(\array_filter($methods, static fn(string $method): bool => !Route::hasBody($method)));
        $isRequired = $plan->body()?->isRequired();
        $problem = match (true) {
            $isRequired === null || $withoutBody === [] => null,
            $withoutBody === $methods => 'take #[Query], or POST',
            $isRequired => 'give it a default or a type with null, take #[Query], or leave '
                . \implode(' and ', $withoutBody) . ' to another handler',
            default => null,
        };
        if ($problem !== null) {
            $reason = "but a request of $withoutBody[0] has no body (RFC 9110, section 9.3): $problem";
            throw new InvalidRouteError("The handler $plan->source of \"$pattern->path\" has a parameter with #[Body], $reason");
        }
    }

    private function attach(self $parent, string $prefix): void
    {
        [$this->parent, $this->prefix] = [$parent, $prefix];
    }

    private function outermost(): self
    {
        return $this->parent?->outermost() ?? $this;
    }

    private function list(): RouteList
    {
        return $this->outermost()->routes;
    }

    private function prefix(): string
    {
        return ($this->parent?->prefix() ?? '') . $this->prefix;
    }

    /** @return list<\Closure> of this group and those around it, the outermost first, up to but without `$root` */
    private function middlewareWithin(self $root): array
    {
        return $this === $root ? [] : [...($this->parent?->middlewareWithin($root) ?? []), ...$this->middleware];
    }

    private function validatorOf(): ?Validator
    {
        return $this->validator ?? $this->parent?->validatorOf();
    }
}
