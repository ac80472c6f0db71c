<?php

declare(strict_types=1);

// Serves the benchmark's requests with Weft, HTTP/1.1 and HTTP/2 on PORT.

use Weft\App;
use Weft\Http\Limits;
use Weft\Http\Request;
use Weft\Http\Response;
use Weft\Sql\Database;
use Weft\Sql\Result;
use Weft\Sql\Transaction;
use Weft\Pool\PoolOptions;

require __DIR__ . '/../../../autoload.php';
require __DIR__ . '/../fortunes.php';

// 20 connections as with every contender; `weft-pipelined` has fewer, and sends several statements at a time on each.
$dsn = (string) getenv('DATABASE_URL');
$dsn .= (str_contains($dsn, '?') ? '&' : '?') . 'max_pipeline=' . (getenv('MAX_PIPELINE') ?: 1);
$database = Database::connect($dsn, new PoolOptions(size: (int) (getenv('POOL_SIZE') ?: 20)));
$body = str_repeat('x', 100_000);

$app = new App();
// The load generator is one client: with 10,000 idle connections it has all there are.
$app->http('127.0.0.1:' . getenv('PORT'), new Limits(clientShare: 1.0))
    ->get('/hello', static fn (): Response => Response::text('Hello, World!'))
    ->get('/json', static fn (): Response => Response::json(['message' => 'Hello, World!']))
    ->get('/query', static fn (Request $request): Response => Response::json(
        $database->execute('SELECT id, name, email FROM people WHERE id = ?', [(int) $request->queryParameter('id')])->first(),
    ))
    ->get('/queries', static function (Request $request) use ($database): Response {
        // The statements of a transaction are sent together, and so is its commit: its results are read afterwards.
        $results = $database->transaction(static function (Transaction $transaction) use ($request): array {
            $results = [];
            for ($i = (int) $request->queryParameter('count'); $i > 0; --$i) {
                $results[] = $transaction->execute('SELECT id, name, email FROM people WHERE id = ?', [mt_rand(1, 10_000)]);
            }

            return $results;
        });

        return Response::json(array_map(static fn (Result $result): ?array => $result->first(), $results));
    })
    ->get('/update', static function () use ($database): Response {
        $row = $database->execute('SELECT id, value FROM counters WHERE id = ?', [mt_rand(1, 10_000)])->first();
        $row['value'] = mt_rand(1, 10_000);
        $database->execute('UPDATE counters SET value = ? WHERE id = ?', [$row['value'], $row['id']]);

        return Response::json($row);
    })
    ->get('/fortunes', static function () use ($database): Response {
        return Response::html(fortunes($database->execute('SELECT id, message FROM fortunes')->rows()));
    })
    ->get('/body', static fn (): Response => Response::text($body))
    ->static('/static', (string) getenv('STATIC_DIRECTORY'));
$app->run();
