<?php

declare(strict_types=1);

/*
 * A shop in one process: an HTTP API, a service bus and a database. Without a server it has both in a file of SQLite;
 * DATABASE_URL=postgres://… and BROKER_URL=amqp://… are PostgreSQL and RabbitMQ. docs/tutorials/getting-started.md explains it.
 *
 *     bin/weft run examples/shop/app.php --watch
 *     curl -i localhost:8080/orders --json '{"item": "book", "quantity": 2}'
 *     curl localhost:8080/sold
 */

namespace Weft\Examples\Shop;

use Weft\App;
use Weft\Http\Body;
use Weft\Http\NotFoundException;
use Weft\Http\Response;
use Weft\Lock\Locks;

$bus = require __DIR__ . '/bus.php';

// A container has 10 s to stop, and its workers have 8 s (see the Dockerfile).
$app = new App(grace: 5.0);
// Several workers start at once, and PostgreSQL lets only one of them make a table.
$app->onStart(static fn() => Locks::database($database)->synchronized('tables of the shop', static function () use ($database): void {
    $database->execute('CREATE TABLE IF NOT EXISTS orders (id VARCHAR(32) PRIMARY KEY, item VARCHAR(100) NOT NULL, quantity INTEGER NOT NULL)');
    $database->execute('CREATE TABLE IF NOT EXISTS stock (item VARCHAR(100) PRIMARY KEY, sold BIGINT NOT NULL)');
}));
$app->http(\getenv('LISTEN') ?: '127.0.0.1:' . (\getenv('PORT') ?: '8080'))
    ->post('/orders', static function (#[Body] NewOrder $order) use ($bus): Response {
        $id = \bin2hex(\random_bytes(16));
        $bus->send(new PlaceOrder($id, $order->item, $order->quantity));

        return Response::accepted()->withHeader('location', "/orders/{$id}");
    })
    ->get('/orders/{id}', static fn(string $id): array => $orders->find($id) ?? throw new NotFoundException("there is no order {$id}"))
    ->get('/sold', static fn(): object => (object) $stock->soldByItem());
$app->consume($bus, 'shop');
$app->run();
