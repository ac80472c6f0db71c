<?php

declare(strict_types=1);

namespace Weft\Http\Internal\Routing;

use Weft\Http\Request;

/**
 * Wraps a handler in middleware.
 *
 * @internal
 */
final class Pipeline
{
    /**
     * @param list<\Closure> $middleware the first is the outermost
     * @param \Closure(Request): mixed $handler
     *
     * @return \Closure(Request): mixed
     */
    public static function of(array $middleware, \Closure $handler): \Closure
    {
        foreach (\array_reverse($middleware) as $outer) {
            $next = $handler;
            $handler = static fn(Request $request): mixed => $outer($request, $next);
        }

        return $handler;
    }
}
