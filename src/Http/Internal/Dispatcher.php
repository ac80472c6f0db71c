<?php

declare(strict_types=1);

namespace Weft\Http\Internal;

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
    /** @param (\Closure(Request): mixed)|null $fallback */
    public function __construct(private readonly RouteTable $routes, private readonly ?\Closure $fallback)
    {
    }

    public function dispatch(Request $request): mixed
    {
        $path = $request->path();
        $method = $request->method();
        $handler = $this->routes->fixed[$path][$method] ?? null;
        if ($handler !== null) {
            return $handler($request);
        }
        [$handlers, $parameters, $request->route] = $this->routes->find($path);
        if (isset($handlers[$method])) {
            $request->parameters = $parameters;

            return $handlers[$method]($request);
        }

        return $this->otherwise($request, $method, $this->routes->findAll($path));
    }

    /** @param array<string, array{\Closure, array<string, string>, string}> $handlers by method */
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
        $allowed = self::allowed(\array_keys($handlers));

        return $method === 'OPTIONS'
            ? new Response(204, ['allow' => $allowed])
            : Response::text("405 Method Not Allowed\n", 405)->withHeader('allow', $allowed);
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
