<?php

declare(strict_types=1);

// Serves the benchmark's requests with Weft, HTTP/1.1 and HTTP/2 on PORT.

use Weft\App;
use Weft\Http\Request;
use Weft\Http\Response;
use Weft\Sql\Database;
use Weft\Pool\PoolOptions;

require __DIR__ . '/../../../autoload.php';

$database = Database::connect((string) getenv('DATABASE_URL'), new PoolOptions(size: 20));
$body = str_repeat('x', 100_000);

$app = new App();
$app->http('127.0.0.1:' . getenv('PORT'))
    ->get('/hello', static fn (): Response => Response::text('Hello, World!'))
    ->get('/json', static fn (): Response => Response::json(['message' => 'Hello, World!']))
    ->get('/query', static fn (Request $request): Response => Response::json(
        $database->execute('SELECT id, name, email FROM people WHERE id = ?', [(int) $request->queryParameter('id')])->first(),
    ))
    ->get('/body', static fn (): Response => Response::text($body))
    ->static('/static', (string) getenv('STATIC_FOLDER'));
$app->run();
