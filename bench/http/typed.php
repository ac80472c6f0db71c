<?php

declare(strict_types=1);

/*
 * What a typed handler costs beside one that does the same by hand: both decode the same request in one process, in turns.
 *
 *     php -d extension=target/release/libweft.so bench/http/typed.php
 */

require __DIR__ . '/../../autoload.php';

use Weft\App;
use Weft\Http\BadRequestException;
use Weft\Http\Body;
use Weft\Http\Header;
use Weft\Http\Query;
use Weft\Http\Request;
use Weft\Http\Response;
use Weft\Http\Router;

final class PlaceOrder
{
    public function __construct(public readonly string $customer, public readonly string $item, public readonly int $count)
    {
    }
}

const CALLS = 100_000;
const ROUNDS = 7;

$byHand = static function (Request $request): Response {
    $data = $request->json();
    if (!is_array($data) || !is_string($data['customer'] ?? null) || !is_string($data['item'] ?? null) || !is_int($data['count'] ?? null)) {
        throw new BadRequestException('malformed');
    }
    $order = new PlaceOrder($data['customer'], $data['item'], $data['count']);
    $page = filter_var($request->queryParameter('page') ?? '1', FILTER_VALIDATE_INT);
    $tenant = $request->header('tenant') ?? throw new BadRequestException('tenant is missing');

    return Response::json(['customer' => $order->customer, 'item' => "$tenant/$order->item/$page", 'count' => $order->count]);
};
$typed = static fn(#[Body] PlaceOrder $order, #[Header] string $tenant, #[Query] int $page = 1): PlaceOrder
    => new PlaceOrder($order->customer, "$tenant/$order->item/$page", $order->count);

$app = new App();
$app->http('127.0.0.1:0')->post('/', static function (Request $request) use ($byHand, $typed): Response {
    $handlers = ['by hand' => (new Router())->post('/', $byHand)->handler(), 'typed' => (new Router())->post('/', $typed)->handler()];
    $best = [];
    for ($round = 0; $round < ROUNDS; $round++) {
        foreach ($handlers as $name => $handler) {
            $began = hrtime(true);
            for ($call = 0; $call < CALLS; $call++) {
                $handler($request);
            }
            $best[$name] = min($best[$name] ?? INF, (hrtime(true) - $began) / CALLS / 1_000);
        }
    }
    fprintf(STDOUT, "by hand %.2f µs, typed %.2f µs a request: %+.2f µs (best of %d rounds of %d calls)\n", $best['by hand'], $best['typed'], $best['typed'] - $best['by hand'], ROUNDS, CALLS);

    return Response::noContent();
});
$app->run(static function (array $addresses): void {
    $body = '{"customer":"ada","item":"loom","count":3}';
    $client = stream_socket_client("tcp://$addresses[0]");
    fwrite($client, "POST /?page=2 HTTP/1.1\r\nhost: localhost\r\ntenant: acme\r\ncontent-type: application/json\r\ncontent-length: " . strlen($body) . "\r\n\r\n$body");
    Weft\async(static function () use ($client): void {
        while (fread($client, 1) === '') {
            Weft\delay(0.01);
        }
        posix_kill(posix_getpid(), SIGTERM);
    });
    stream_set_blocking($client, false);
});
