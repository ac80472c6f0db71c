<?php

declare(strict_types=1);

namespace Weft\Http\Internal\Routing;

use Weft\Http\Request;
use Weft\Runtime\Internal\CallSites;
use Weft\UsageError;

/**
 * Wraps a handler in middleware.
 *
 * @internal
 */
final class Pipeline
{
    /**
     * @param list<\Closure> $middleware the first is the outermost
     * @param \Closure(Request): mixed $handler returns a Response where there is middleware
     *
     * @return \Closure(Request): mixed
     */
    public static function of(array $middleware, \Closure $handler): \Closure
    {
        foreach (\array_reverse($middleware) as $outer) {
            $next = $handler;
            $handler = static fn(Request $request): mixed => $outer($request, $next) ?? throw self::forgotten($outer);
        }

        return $handler;
    }

    /** `$next` returns a response even for a handler that returns nothing, so null is not its result. */
    private static function forgotten(\Closure $middleware): UsageError
    {
        return new UsageError('The middleware ' . CallSites::nameOf($middleware) . ' at ' . CallSites::originOf($middleware) . ' returned null: it must return $next($request), or a response of its own');
    }
}
