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
 * Which handler answers which request.
 *
 * A path may have names: `/people/{id}` stands for one segment, `/people/{id:\d+}` for what the expression matches,
 * `/files/{path:.+}` for all the rest. A handler gets what it asks for: the Request by its type, what a name stood for by the
 * parameter's name, as a string, an int or a float (a path that is none is not found). It returns a Response.
 *
 * A path without names wins over one with names; among these the first that was added. HEAD is answered by GET's handler,
 * OPTIONS with the methods there are, another method with 405 and an unknown path with 404.
 *
 * A middleware is called with the Request and with what comes after it, and returns a Response:
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
    /** Of the paths of a group. */
    private string $prefix = '';

    /** Puts middleware around everything in this router or group, whenever it was added; the first is the outermost. */
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
     * @throws \ValueError the path does not begin with a slash, is malformed or taken
     */
    public function route(array $methods, string $path, callable $handler, callable ...$middleware): self
    {
        $path = $this->prefix . $path;
        if (!\str_starts_with($path, '/')) {
            throw new \ValueError("A route's path begins with /, got \"$path\"");
        }
        $middleware = \array_map(static fn(callable $one) => $one(...), \array_values($middleware));
        $this->routes[] = new Route(\array_map(\strtoupper(...), $methods), $path, $handler(...), $middleware);

        return $this;
    }

    /**
     * The files of a folder, to GET and HEAD, with conditions and ranges as `Response::file()` has them. Nothing outside the
     * folder can be had, by whatever path or link. Where a sibling of a text has `.br`, `.zst` or `.gz` at the end of its name,
     * clients that ask for that coding get it.
     *
     * @param string $path `/assets`, or `` for everything that has no other route
     * @param string $folder found now; a link to another one later is not followed
     * @param string|null $index the file that is shown for a folder; null is none
     * @param float $maxAge seconds a client may keep a file without asking again; 0 is not at all: it asks, and is answered 304
     * @param bool $immutable files never change: their names do
     * @param bool $hidden names that begin with a dot may be seen
     *
     * @throws \ValueError the path is malformed or taken
     * @throws \Error there is no such folder
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
            throw new \ValueError("maxAge must be 0 seconds at least, got $maxAge");
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
     * A WebSocket (RFC 6455), over HTTP/1.1 and HTTP/2 (RFC 8441). Middleware sees the request, and the answer once the conversation has ended.
     *
     * The conversation ends with the handler: closed with 1000, or with 1011 where it throws; tasks it has left running are
     * cancelled.
     *
     * @param callable $handler gets the WebSocket by its type, and what other handlers get
     * @param list<string> $subprotocols the client gets the first of them that it offers, if it does
     * @param list<string>|null $origins pages that may connect (`https://example.org`), `*` is any; null is those of the scheme
     *     and host that was asked for. Clients that are no browsers send none, and may.
     * @param int $messageBytes of a message from the client; a longer one ends the conversation with 1009
     * @param float $pingInterval in seconds, 0 is never. A client that has sent nothing by the ping after is gone.
     * @param bool $compress messages of 256 bytes and more are compressed both ways where the client can (RFC 7692); what one
     *     becomes may be no longer than `$messageBytes` either
     * @param string|null $publicScheme what browsers ask for, to compare with the scheme of a page: `https` where a proxy in front
     *     ends TLS; null is the scheme of the request
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
            throw new \ValueError("publicScheme is http or https, got \"$publicScheme\"");
        }
        if ($messageBytes < 1 || !($pingInterval >= 0.0)) {
            throw new \ValueError("A WebSocket takes messages of 1 byte at least and pings every 0 seconds at least, got $messageBytes and $pingInterval");
        }
        $arguments = HandlerCall::withSocket($handler(...), $this->prefix . $path);
        $conversation = new WebSocketRoute($arguments, $subprotocols, $origins, $messageBytes, $pingInterval, $compress, $publicScheme);

        return $this->route(['GET'], $path, $conversation->open(...), ...$middleware);
    }

    /**
     * Adds the routes of `$define` under a prefix, with middleware of their own.
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

    /** Answers what no route is for, instead of the 404. */
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
