<?php

declare(strict_types=1);

// Serves the library by gRPC and by HTTP with JSON on a free port, which it prints; pages of HTTP are on the same one, unless it gets "alone".
// With "metrics" it serves these too, on another port, which it logs.

use Weft\App;
use Weft\Grpc\Limits;
use Weft\Grpc\MethodLimits;
use Weft\Grpc\ServerOptions;
use Weft\Http\Response;
use Weft\Tests\Grpc\Library\Shelves;

require dirname(__DIR__, 3) . '/autoload.php';

$app = new App();
($argv[1] ?? '') !== 'metrics' || $app->metrics('127.0.0.1:0');
($argv[1] ?? '') === 'alone' || $app->http('127.0.0.1:0')->get('/page', static fn (): Response => Response::text('a page'));
$app->grpc('127.0.0.1:0', new Shelves(), new ServerOptions(limits: new Limits(methods: [
    'library.Library/GetBook' => new MethodLimits(timeout: 1.0),
    'library.Library/LendBook' => new MethodLimits(messageBytes: 200),
]), reflection: true, webOrigins: ['https://app.example'], json: true));
$app->run(static function (array $addresses): void {
    echo $addresses[0], "\n";
});
