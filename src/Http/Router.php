<?php

declare(strict_types=1);

namespace Weft\Http;

use Weft\Http\Internal\WebSocketRoute;
use Weft\Http\Internal\Dispatcher;
use Weft\Http\Internal\StaticFolder;
use Weft\Http\Internal\HandlerCall;
use Weft\Http\Internal\Pipeline;
use Weft\Http\Internal\Route;
use Weft\Http\Internal\RouteTable;
use Weft\Http\Internal\RequestTimer;
use Weft\Native\HttpStaticDir;

/**
 * Maps requests to handlers.
 *
 * ```
 * $router = (new Router())
 *     ->get('/people/{id}', fn (int $id) => Response::json($people->find($id) ?? throw new NotFoundException()))
 *     ->post('/people', fn (Request $request) => Response::created($people->add($request->json())));
 * ```
 *
 * A path may have parameters: `{id}` matches one segment, `{id:\d+}` what the expression matches, `{path:.+}` the rest of the path.
 * A handler declares what it needs: the Request by its type, path parameters by their names, as string, int or float (a value of
 * another type is not found). It returns a Response.
 *
 * A path without parameters takes precedence; among the others the first one added does. GET handlers also answer HEAD, OPTIONS
 * lists the methods of a path, another method is 405 and an unknown path 404.
 *
 * A middleware receives the Request and the next handler, and returns a Response:
 * `fn (Request $request, \Closure $next): Response => $next($request)->withHeader('x-powered-by', 'Weft')`.
 */
final class Router
{
    /** @var list<Route> */
    private array $routes = [];
    /** @var list<\Closure> */
    private array $middleware = [];
    /** @var list<self> */
    private array $groups = [];
    private ?\Closure $fallback = null;
    /** The prefix of a group's paths. */
    private string $prefix = '';

    /** Adds middleware around all routes of this router or group, including routes added earlier. The first is the outermost. */
    public function use(callable ...$middleware): self
    {
        foreach ($middleware as $one) {
            $this->middleware[] = $one(...);
        }

        return $this;
    }

    public function get(string $path, callable $handler, callable ...$middleware): self
    {
        return $this->route(['GET'], $path, $handler, ...$middleware);
    }

    public function post(string $path, callable $handler, callable ...$middleware): self
    {
        return $this->route(['POST'], $path, $handler, ...$middleware);
    }

    public function put(string $path, callable $handler, callable ...$middleware): self
    {
        return $this->route(['PUT'], $path, $handler, ...$middleware);
    }

    public function patch(string $path, callable $handler, callable ...$middleware): self
    {
        return $this->route(['PATCH'], $path, $handler, ...$middleware);
    }

    public function delete(string $path, callable $handler, callable ...$middleware): self
    {
        return $this->route(['DELETE'], $path, $handler, ...$middleware);
    }

    /**
     * @param list<string> $methods
     *
     * @throws \ValueError the path does not begin with a slash, is malformed or already has a handler
     */
    public function route(array $methods, string $path, callable $handler, callable ...$middleware): self
    {
        $path = $this->prefix . $path;
        if (!\str_starts_with($path, '/')) {
            throw new \ValueError("The path of a route must begin with /, got \"$path\"");
        }
        $middleware = \array_map(static fn(callable $one) => $one(...), \array_values($middleware));
        $this->routes[] = new Route(\array_map(\strtoupper(...), $methods), $path, $handler(...), $middleware);

        return $this;
    }

    /**
     * Serves the files of a directory to GET and HEAD, with conditional and range requests as in `Response::file()`. No path and no
     * symbolic link leads out of the directory. If a text file has a sibling with the suffix `.br`, `.zst` or `.gz`, clients that
     * accept that encoding get the sibling.
     *
     * @param string $path such as `/assets`; empty for all paths without another route
     * @param string $folder resolved now; a symbolic link that changes later has no effect
     * @param string|null $index the file served for a directory; null serves none
     * @param float $maxAge seconds a client may cache a file; with 0 it revalidates every time and gets 304
     * @param bool $immutable the content behind a name never changes
     * @param bool $hidden serves files whose name begins with a dot
     *
     * @throws \ValueError the path is malformed or already has a handler
     * @throws \Error the directory does not exist
     */
    public function static(
        string $path,
        string $folder,
        ?string $index = 'index.html',
        float $maxAge = 0.0,
        bool $immutable = false,
        bool $hidden = false,
        callable ...$middleware,
    ): self {
        if (!($maxAge >= 0.0)) {
            throw new \ValueError("maxAge must be at least 0 seconds, got $maxAge");
        }
        $cache = $maxAge === 0.0 ? 'no-cache' : 'public, max-age=' . (int) $maxAge . ($immutable ? ', immutable' : '');
        $headers = ['cache-control' => $cache, 'x-content-type-options' => 'nosniff'];
        $files = new StaticFolder(HttpStaticDir::open($folder, $hidden), $index, $headers);
        $path = \rtrim($path, '/');
        if ($this->prefix . $path !== '') {
            $this->get($path, StaticFolder::toFolder(...), ...$middleware);
        }

        return $this->get("$path/{" . StaticFolder::PATH . ':.*}', $files->answer(...), ...$middleware);
    }

    /**
     * A WebSocket endpoint (RFC 6455) over HTTP/1.1 and HTTP/2 (RFC 8441). Middleware sees the handshake request, and the response once the
     * WebSocket has closed.
     *
     * The WebSocket closes when the handler ends: with 1000, or with 1011 if it throws. Tasks that the handler has left running are
     * cancelled.
     *
     * @param callable $handler receives the WebSocket by its type, and the arguments of other handlers
     * @param list<string> $subprotocols the server selects the first one that the client offers
     * @param list<string>|null $origins origins that may connect (`https://example.org`), `*` allows any; null allows the scheme and
     *     host of the request. Requests without an Origin, which browsers never send, are allowed.
     * @param int $messageBytes of a message from the client; a longer one closes the WebSocket with 1009
     * @param float $pingInterval in seconds, 0 disables it. A client that has sent nothing by the next ping is disconnected.
     * @param bool $compress compresses messages of 256 bytes or more if the client supports it (RFC 7692); `$messageBytes`
     *     also limits the decompressed size
     * @param string|null $publicScheme the scheme that browsers use, compared with the scheme of the Origin: `https` behind a
     *     proxy that terminates TLS; null is the scheme of the request
     *
     * @throws \ValueError
     */
    public function websocket(
        string $path,
        callable $handler,
        array $subprotocols = [],
        ?array $origins = null,
        int $messageBytes = 1 << 20,
        float $pingInterval = 30.0,
        bool $compress = false,
        ?string $publicScheme = null,
        callable ...$middleware,
    ): self {
        if ($publicScheme !== null && $publicScheme !== 'http' && $publicScheme !== 'https') {
            throw new \ValueError("publicScheme must be http or https, got \"$publicScheme\"");
        }
        if ($messageBytes < 1 || !($pingInterval >= 0.0)) {
            throw new \ValueError("messageBytes must be at least 1 and pingInterval at least 0 seconds, got $messageBytes and $pingInterval");
        }
        $arguments = HandlerCall::withSocket($handler(...), $this->prefix . $path);
        $conversation = new WebSocketRoute($arguments, $subprotocols, $origins, $messageBytes, $pingInterval, $compress, $publicScheme);

        return $this->route(['GET'], $path, $conversation->open(...), ...$middleware);
    }

    /**
     * Adds the routes that `$define` adds under a common prefix, with their own middleware.
     *
     * @param \Closure(self): mixed $define
     */
    public function group(string $prefix, \Closure $define, callable ...$middleware): self
    {
        $group = new self();
        $group->prefix = $this->prefix . $prefix;
        $group->use(...$middleware);
        $define($group);
        $this->groups[] = $group;

        return $this;
    }

    /** Handles requests without a matching route, instead of a 404. */
    public function fallback(callable $handler): self
    {
        $this->fallback = $handler(...);

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
        $this->addTo($table, []);
        $fallback = $this->fallback === null ? null : HandlerCall::of($this->fallback);
        $dispatcher = new Dispatcher($table, $fallback);

        return Pipeline::of($this->middleware, $dispatcher->dispatch(...));
    }

    /** @param list<\Closure> $outer middleware of the groups around this one */
    private function addTo(RouteTable $table, array $outer): void
    {
        foreach ($this->routes as $route) {
            $middleware = [...$outer, ...$route->middleware];
            $handler = Pipeline::of($middleware, HandlerCall::of($route->handler, $route->path));
            $table->add($route, RequestTimer::of($route, $handler));
        }
        foreach ($this->groups as $group) {
            $group->addTo($table, [...$outer, ...$group->middleware]);
        }
    }
}
