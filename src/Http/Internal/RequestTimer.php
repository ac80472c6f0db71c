<?php

declare(strict_types=1);

namespace Weft\Http\Internal;

use Weft\Http\Request;
use Weft\Native;
use Weft\Native\Histogram;

/**
 * How long the requests of a route take. The extension holds the clock; where nobody can ask, there is none.
 *
 * @internal
 */
final class RequestTimer
{
    /**
     * @param \Closure(Request): mixed $handler
     *
     * @return \Closure(Request): mixed
     */
    public static function of(Route $route, \Closure $handler): \Closure
    {
        if (!Native\measured()) {
            return $handler;
        }
        $histograms = [];
        foreach ($route->methods as $method) {
            $histograms[$method] = new Histogram(
                'weft_http_request_seconds',
                'Time from the arrival of a request to its answer, by route.',
                ['method' => $method, 'route' => $route->path],
            );
        }

        return static function (Request $request) use ($handler, $histograms): mixed {
            $request->timedBy($histograms[$request->method()] ?? $histograms['GET']);

            return $handler($request);
        };
    }
}
