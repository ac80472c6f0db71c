<?php

declare(strict_types=1);

namespace Weft\Http\Internal\Routing;

use Weft\Http\Request;
use Weft\Native;
use Weft\Native\Histogram;

/**
 * Measures the duration of the requests of a route. The extension takes the time; a program with neither a supervisor nor a metrics
 * endpoint measures nothing.
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
                'weft_http_request_duration_seconds',
                'Duration of HTTP requests, by route.',
                ['method' => $method, 'route' => $route->pattern->path],
            );
        }

        return static function (Request $request) use ($handler, $histograms): mixed {
            $request->timedBy($histograms[$request->method()] ?? $histograms['GET']);

            return $handler($request);
        };
    }
}
