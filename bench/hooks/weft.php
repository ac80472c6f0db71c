<?php

declare(strict_types=1);

// Weft serves page.php.

use Weft\App;
use Weft\Http\Response;
use Weft\Pool\Pool;
use Weft\Pool\PoolOptions;

require __DIR__ . '/../../autoload.php';
require __DIR__ . '/page.php';

$pool = new Pool(people(...), new PoolOptions(size: 20));
$borrow = static fn(Closure $query): string => $pool->with($query);
$app = new App();
$app->http('127.0.0.1:' . getenv('PORT'))
    ->get('/call', static fn(): Response => Response::text(page('/call')))
    ->get('/query', static fn(): Response => Response::text(page('/query', $borrow)));
$app->run();
