<?php

declare(strict_types=1);

namespace Weft\Http\Internal\Routing;

use Weft\Http\HttpException;
use Weft\Http\NotFoundException;
use Weft\Http\Request;
use Weft\Http\Response;

/**
 * Finds and calls the handler of a request.
 *
 * @internal
 */
final class Dispatcher
{
    /**
     * @param (\Closure(Request): mixed)|null $fallback
     * @param RouteTable $options answers to OPTIONS inside the middleware of the group of each route, by the method of the route
     */
    public function __construct(private readonly RouteTable $routes, private readonly ?\Closure $fallback, private readonly RouteTable $options)
    {
    }

    public function dispatch(Request $request): mixed
    {
        $handler = $this->routes->endpoints[$request->endpoint()] ?? null;
        if ($handler !== null) {
            return $handler($request);
        }
        $path = $request->path();
        $method = $request->method();
        [$handlers, $parameters, $request->route] = $this->routes->find($path);
        if (isset($handlers[$method])) {
            $request->parameters = $parameters;

            return $handlers[$method]($request);
        }

        return $this->otherwise($request, $method, $this->routes->findAll($path));
    }

    /** @param array<string, array{\Closure, array<string, string>, string|null}> $handlers by method */
    private function otherwise(Request $request, string $method, array $handlers): mixed
    {
        $match = $handlers[$method] ?? ($method === 'HEAD' ? $handlers['GET'] ?? null : null);
        if ($match !== null) {
            [$handler, $request->parameters, $request->route] = $match;

            return $handler($request);
        }
        if ($request->path() === '*' && $method === 'OPTIONS') {
            return Response::noContent();
        }
        if ($handlers === []) {
            return $this->fallback === null ? throw new NotFoundException() : ($this->fallback)($request);
        }
        if ($method === 'OPTIONS') {
            return self::options(\array_keys($handlers));
        }

        throw new HttpException(405, "405 Method Not Allowed", ['allow' => self::allowed(\array_keys($handlers))]);
    }

    /**
     * Groups may share a path. A preflight is for the route of its `Access-Control-Request-Method`.
     *
     * @param \Closure(Request): mixed $default of the first group
     */
    public function dispatchOptions(Request $request, \Closure $default): mixed
    {
        $method = $request->header('access-control-request-method');
        $handlers = $method === null ? [] : $this->options->findAll($request->path());
        $handler = $handlers[$method] ?? ($method === 'HEAD' ? $handlers['GET'] ?? null : null);

        return $handler === null ? $default($request) : $handler[0]($request);
    }

    /** Answers OPTIONS inside the middleware of a group, which may have something to add, as CORS has. */
    public function answerOptions(Request $request): Response
    {
        return self::options(\array_keys($this->routes->findAll($request->path())));
    }

    /** @param list<string> $methods */
    private static function options(array $methods): Response
    {
        return new Response(204, ['allow' => self::allowed($methods)]);
    }

    /** @param list<string> $methods */
    private static function allowed(array $methods): string
    {
        if (\in_array('GET', $methods, true)) {
            $methods[] = 'HEAD';
        }
        $methods[] = 'OPTIONS';

        return \implode(', ', \array_unique($methods));
    }
}
