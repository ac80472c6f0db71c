<?php

declare(strict_types=1);

use Weft\App;
use Weft\Http\RealmHandler;
use Weft\Http\Request;
use Weft\Http\Response;

use function Weft\delay;

require __DIR__ . '/../../../../autoload.php';

ini_set('session.save_path', (string) getenv('SESSIONS'));
// The ids of the tests are made up, which PHP 8.6 does not accept by default.
ini_set('session.use_strict_mode', '0');
// Of the process, and not of its requests.
set_exception_handler(static function (Throwable $thrown): void {
    fwrite(STDERR, "the process has failed: {$thrown->getMessage()}\n");
});
$app = new App();
$app->http((string) getenv('LISTEN'))
    ->get('/shared', static function (Request $request): Response {
        $_GET = ['n' => $request->queryParameter('n')];
        delay(0.01);

        return Response::text($_GET['n'] === $request->queryParameter('n') ? 'matched' : 'mismatch');
    })
    ->fallback(RealmHandler::script(__DIR__ . '/index.php', size: 16, wait: 60.0));
$app->run();
