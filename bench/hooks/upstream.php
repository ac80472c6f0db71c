<?php

declare(strict_types=1);

// The HTTP server that clients call: it waits as long as it is asked to.

use Weft\App;
use Weft\Http\Request;
use Weft\Http\Response;

require __DIR__ . '/../../autoload.php';

$app = new App();
$app->http('127.0.0.1:' . getenv('PORT'))
    ->get('/', static fn(): Response => Response::text("ok\n"))
    ->get('/wait', static function (Request $request): Response {
        Weft\delay((float) $request->queryParameter('seconds'));

        return Response::text("ok\n");
    });
$app->run();
