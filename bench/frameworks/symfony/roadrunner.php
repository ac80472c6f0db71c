<?php

declare(strict_types=1);

// A worker of RoadRunner, with one kernel and one request at a time.

use Symfony\Component\HttpFoundation\Request;
use Weft\Bench\Frameworks\Symfony\Kernel;

require __DIR__ . '/autoload.php';
require __DIR__ . '/../roadrunner.php';

$kernel = new Kernel('prod', false);
$request = $response = null;
serve(
    static function (Request $message) use ($kernel, &$request, &$response): array {
        $request = $message;
        $response = $kernel->handle($request);

        return [$response->getStatusCode(), $response->headers->all(), (string) $response->getContent()];
    },
    static function () use ($kernel, &$request, &$response): void {
        $kernel->terminate($request, $response);
        // Resets the services, so that the next request finds none of this one's state.
        $kernel->boot();
    },
);
