<?php

declare(strict_types=1);

// A worker of RoadRunner, with one application and one request at a time. Debian has no Laravel Octane, so a request is begun, ended and forgotten by
// what Weft's bridge does in place of it: a clone of the application handles it, then services are reset.

use Symfony\Component\HttpFoundation\Request;
use Weft\Bridge\Laravel\Internal\Instance;

require __DIR__ . '/autoload.php';
require __DIR__ . '/../roadrunner.php';

$instance = Instance::boot(__DIR__);
serve(
    static function (Request $request) use ($instance): array {
        $request->overrideGlobals();
        $response = $instance->handle();

        return [$response->status, array_map(static fn(array|string $values): array => (array) $values, $response->headers), $response->body];
    },
    static function () use ($instance): void {
        $instance->terminate();
        $instance->reset();
    },
);
