<?php

declare(strict_types=1);

/*
 * What `make soak-reload` serves: a constant answer, one that takes 50 ms and so is always in flight somewhere, and who answers.
 *
 *     bin/weft run bench/reload/app.php -- 127.0.0.1:8080
 */

use Weft\Http\Response;
use Weft\Http\Router;
use Weft\Http\Server;
use Weft\Workers\Worker;

use function Weft\async;
use function Weft\delay;
use function Weft\run;

require __DIR__ . '/../../autoload.php';

[, $address] = $argv;
$routes = (new Router())
    ->get('/', static fn(): Response => Response::text("ok\n"))
    ->get('/worker', static fn(): Response => Response::text((string) Worker::index()))
    ->get('/slow', static function (): Response {
        delay(0.05);

        return Response::text("ok\n");
    });

run(static function () use ($routes, $address): void {
    $server = new Server($routes);
    $server->listen($address);
    async($server->run(...));
    Worker::untilStopped();
    $server->stop();
});
