<?php

declare(strict_types=1);

namespace Weft\Http\Internal\Routing;

use Weft\Http\InvalidRouteError;

/**
 * The routes of a router and its groups, in the order in which they were added.
 *
 * @internal
 */
final class RouteList
{
    /** @var list<Route> */
    public array $routes = [];
    /** @var array<string, Route> */
    private array $byName = [];

    /** @throws InvalidRouteError another route has its requests */
    public function add(Route $route): Route
    {
        foreach ($this->routes as $earlier) {
            $shared = \array_intersect($route->methods, $earlier->methods);
            if ($shared !== []) {
                self::checkReachable($route, $earlier, \array_values($shared)[0]);
            }
        }
        if ($route->name !== null) {
            $this->name($route, $route->name);
        }

        return $this->routes[] = $route;
    }

    /** @throws InvalidRouteError another route has the name */
    public function name(Route $route, string $name): void
    {
        $named = $this->byName[$name] ?? null;
        if ($named !== null) {
            throw new InvalidRouteError("The name \"$name\" of {$route->describe($route->methods[0])} is the name of {$named->describe($named->methods[0])}");
        }
        $route->name = $name;
        $this->byName[$name] = $route;
    }

    public function named(string $name): Route
    {
        return $this->byName[$name] ?? throw new \ValueError("No route is named \"$name\"; there are: " . (\implode(', ', \array_keys($this->byName)) ?: 'none'));
    }

    private static function checkReachable(Route $route, Route $earlier, string $method): void
    {
        if ($route->pattern->expression === $earlier->pattern->expression) {
            throw new InvalidRouteError("$method {$route->pattern->path} has a handler already: {$route->describe($method)} conflicts with {$earlier->describe($method)}");
        }
        // A path without parameters takes precedence in any order.
        if ($route->pattern->names !== [] && $earlier->pattern->names !== [] && $earlier->pattern->covers($route->pattern)) {
            throw new InvalidRouteError("{$route->describe($method)} can never be reached: {$earlier->describe($method)} was added before it and matches all its paths. Add the more specific route first");
        }
    }
}
