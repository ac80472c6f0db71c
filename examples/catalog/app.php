<?php

declare(strict_types=1);

/*
 * PDO, Guzzle and phpredis as any program of PHP uses them. In a task of Weft they suspend the task, so one process answers many requests
 * while each waits for the database, another service and the cache.
 *
 *     export DATABASE='pgsql:host=127.0.0.1;dbname=app;user=app;password=secret' PRICES=http://127.0.0.1:8090 REDIS=127.0.0.1:6379
 *     bin/weft run examples/catalog/app.php
 *     curl localhost:8080/products/7
 */

use GuzzleHttp\Client;
use Weft\App;
use Weft\Http\NotFoundException;
use Weft\Http\Response;
use Weft\Pool\Pool;
use Weft\Pool\PoolOptions;

use function Weft\all;

require __DIR__ . '/../../autoload.php';
// With Composer, `require 'vendor/autoload.php'` loads both.
class_exists(Client::class) || require '/usr/share/php/GuzzleHttp/autoload.php';

// A connection serves one task at a time: each request borrows one. Guzzle's client can be shared.
$databases = new Pool(
    static fn(): PDO => new PDO((string) getenv('DATABASE')),
    new PoolOptions(size: 10, name: 'database'),
    check: static fn(PDO $pdo): bool => $pdo->query('SELECT 1') !== false,
);
$caches = new Pool(static function (): Redis {
    [$host, $port] = explode(':', (string) getenv('REDIS'));
    $redis = new Redis();
    $redis->connect($host, (int) $port);

    return $redis;
}, new PoolOptions(size: 20, name: 'cache'));
$prices = new Client(['base_uri' => getenv('PRICES'), 'timeout' => 10.0]);

$product = static fn(int $id): array => $databases->with(static function (PDO $pdo) use ($id): array {
    $statement = $pdo->prepare('SELECT id, name FROM catalog_products WHERE id = ?');
    $statement->execute([$id]);

    return $statement->fetch(PDO::FETCH_ASSOC) ?: throw new NotFoundException("There is no product $id");
});
$price = static fn(int $id): string => (string) $prices->get("/prices/$id")->getBody();

$app = new App();
$app->http('127.0.0.1:' . (getenv('PORT') ?: '8080'))
    ->get('/products/{id:\d+}', static function (int $id) use ($caches, $product, $price): Response {
        $cached = $caches->with(static fn(Redis $redis): string|false => $redis->get("catalog:$id"));
        if ($cached !== false) {
            return Response::json(json_decode($cached, true));
        }
        // Both wait at the same time.
        [$found, $cost] = all([static fn(): array => $product($id), static fn(): string => $price($id)]);
        $found['price'] = $cost;
        $caches->with(static fn(Redis $redis): bool => $redis->setex("catalog:$id", 60, (string) json_encode($found)));

        return Response::json($found);
    });
$app->run();
