<?php

declare(strict_types=1);

// Weft serves page.php.

use Weft\App;
use Weft\Http\Response;
use Weft\Pool\Pool;
use Weft\Pool\PoolOptions;

require __DIR__ . '/../../autoload.php';
require __DIR__ . '/page.php';

$pool = null;
$borrow = static function (Closure $query) use (&$pool): string {
    return $pool->with($query);
};
$app = new App();
// Each log-in computes for milliseconds: the connections are opened before the first request, as swoole.php opens its own.
$app->onStart(static function () use (&$pool): void {
    $pool = new Pool(people(...), new PoolOptions(size: 20, minimumIdle: 20));
});
$app->http('127.0.0.1:' . getenv('PORT'))
    ->get('/call', static fn(): Response => Response::text(page('/call')))
    ->get('/query', static fn(): Response => Response::text(page('/query', $borrow)));
$app->run();
