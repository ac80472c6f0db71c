<?php

declare(strict_types=1);

// A worker of FrankenPHP, with one kernel and one request at a time. It does what the package runtime/frankenphp-symfony does, and Symfony's own
// runner since 7.4, but never ends: those end after 500 requests.

use Symfony\Component\HttpFoundation\Request;
use Weft\Bench\Frameworks\Symfony\Kernel;

require __DIR__ . '/autoload.php';

ignore_user_abort(true);
$server = array_filter($_SERVER, static fn(string $name): bool => !str_starts_with($name, 'HTTP_'), ARRAY_FILTER_USE_KEY);
$server['APP_RUNTIME_MODE'] = 'web=1&worker=1';
$kernel = new Kernel('prod', false);
$request = $response = null;
$handle = static function () use ($kernel, $server, &$request, &$response): void {
    $_SERVER += $server;
    $request = Request::createFromGlobals();
    $response = $kernel->handle($request);
    $response->send();
};
do {
    $continues = frankenphp_handle_request($handle);
    if ($request !== null && $response !== null) {
        $kernel->terminate($request, $response);
    }
    gc_collect_cycles();
} while ($continues);
