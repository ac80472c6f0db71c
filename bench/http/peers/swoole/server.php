<?php

declare(strict_types=1);

// Serves the benchmark's requests with Swoole, HTTP/1.1 and HTTP/2 on PORT, as its documentation recommends for one core: SWOOLE_BASE,
// one worker, all hooks, and a channel of connections whose statements were prepared once.

use Swoole\Coroutine\Channel;
use Swoole\Http\Request;
use Swoole\Http\Response;
use Swoole\Http\Server;

require __DIR__ . '/../../fortunes.php';
require __DIR__ . '/../../session.php';

$server = new Server('127.0.0.1', (int) getenv('PORT'), SWOOLE_BASE);
$server->set([
    'worker_num' => 1,
    'hook_flags' => SWOOLE_HOOK_ALL,
    'log_level' => SWOOLE_LOG_WARNING,
    'open_http2_protocol' => true,
    'max_connection' => 20_000,
    'backlog' => 4096,
    'enable_static_handler' => true,
    'document_root' => dirname((string) getenv('STATIC_DIRECTORY')),
    'static_handler_locations' => ['/static'],
]);
$body = str_repeat('x', 100_000);
$sessions = null;
$borrow = static function (Closure $work) use (&$sessions): mixed {
    $session = $sessions->pop();
    try {
        return $work($session);
    } finally {
        $sessions->push($session);
    }
};
$text = static function (Response $response, string $content): void {
    $response->header('Content-Type', 'text/plain; charset=utf-8');
    $response->end($content);
};
$json = static function (Response $response, array $value): void {
    $response->header('Content-Type', 'application/json');
    $response->end(json_encode($value, JSON_THROW_ON_ERROR));
};
$html = static function (Response $response, string $page): void {
    $response->header('Content-Type', 'text/html; charset=utf-8');
    $response->end($page);
};
$server->on('workerStart', static function () use (&$sessions): void {
    $sessions = new Channel(20);
    for ($i = 0; $i < 20; ++$i) {
        $sessions->push(new Session());
    }
});
$server->on('request', static function (Request $request, Response $response) use ($borrow, $text, $json, $html, $body): void {
    match ($request->server['request_uri']) {
        '/hello' => $text($response, 'Hello, World!'),
        '/json' => $json($response, ['message' => 'Hello, World!']),
        '/query' => $json($response, $borrow(static fn (Session $session): array => $session->person((int) $request->get['id']))),
        '/queries' => $json($response, $borrow(static fn (Session $session): array => $session->people((int) $request->get['count']))),
        '/update' => $json($response, $borrow(static fn (Session $session): array => $session->update())),
        '/fortunes' => $html($response, fortunes($borrow(static fn (Session $session): array => $session->fortunes()))),
        '/body' => $text($response, $body),
        default => $response->status(404) && $response->end(),
    };
});
$server->start();
