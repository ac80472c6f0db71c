<?php

declare(strict_types=1);

/*
 * Serves the page of `bootstrap/app.php` beside it: by applications in realms, or, to show that the check can fail, by one application for all
 * requests (`SHARED=1`), or by Octane's worker (`OCTANE=1`).
 */

use Illuminate\Foundation\Application;
use Weft\App;
use Weft\Bridge\Laravel\Internal\Applications;
use Weft\Bridge\Laravel\Internal\Instance;
use Weft\Http\Request;
use Weft\Http\Response;
use Weft\Log\StreamLogger;

require __DIR__ . '/../../../../examples/laravel/autoload.php';

$server = new App();
if (getenv('SHARED') === '1') {
    $instance = null;
    $handler = static function (Request $request) use (&$instance): Response {
        $instance ??= Instance::boot(__DIR__);
        [$_GET, $_POST, $_COOKIE, $_FILES] = [$request->queryParameters(), [], [], []];
        $_SERVER = ['REQUEST_METHOD' => 'GET', 'REQUEST_URI' => $request->path() . '?' . $request->queryString(), 'HTTP_HOST' => 'localhost'] + $_SERVER;

        // A reset would end the transactions of the other requests, and none of them would be answered.
        return $instance->handle();
    };
} else {
    /** @var Application $console */
    $console = require __DIR__ . '/bootstrap/app.php';
    $console->make(Illuminate\Contracts\Console\Kernel::class)->bootstrap();
    Applications::dumpIntoResponses($console);
    restore_error_handler();
    restore_exception_handler();
    $isOnOctane = getenv('OCTANE') === '1';
    $isOnOctane && !class_exists(Laravel\Octane\Worker::class) && require __DIR__ . '/../octane/octane.php';
    $handler = Applications::of($console, (int) (getenv('APPLICATIONS') ?: 8), StreamLogger::fromEnvironment(), __DIR__, $isOnOctane);
}
$server->http((string) getenv('LISTEN'))->fallback($handler);
$server->run();
