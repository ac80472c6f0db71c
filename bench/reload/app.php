<?php

declare(strict_types=1);

/*
 * What `make soak-reload` serves: a constant answer, and one that takes 50 ms and so is always in flight somewhere.
 *
 *     bin/weft run bench/reload/app.php -- 127.0.0.1:8080
 *     php bench/reload/app.php 127.0.0.1:8080 share     several of these share the port with SO_REUSEPORT
 */

use Weft\Http\Response;
use Weft\Http\Router;
use Weft\Http\Server;

use function Weft\async;
use function Weft\delay;
use function Weft\run;

require __DIR__ . '/../../autoload.php';

[, $address] = $argv;
$routes = Router::new()
    ->get('/', static fn(): Response => Response::text("ok\n"))
    ->get('/slow', static function (): Response {
        delay(0.05);

        return Response::text("ok\n");
    });

run(static function () use ($routes, $address, $argv): void {
    $server = new Server($routes);
    $server->listen($address, sharePort: ($argv[2] ?? '') === 'share');
    async($server->run(...));
    Weft\Workers\Worker::untilStopped();
    $server->stop();
});
