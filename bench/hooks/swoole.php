<?php

declare(strict_types=1);

// Swoole serves page.php with all its hooks, as its documentation recommends: a channel of connections in each process.

use Swoole\Coroutine\Channel;
use Swoole\Http\Request;
use Swoole\Http\Response;
use Swoole\Http\Server;

require __DIR__ . '/page.php';

Swoole\Coroutine::set(['hook_flags' => SWOOLE_HOOK_ALL]);
$server = new Server('127.0.0.1', (int) getenv('PORT'), SWOOLE_BASE);
$server->set(['worker_num' => (int) ($argv[1] ?? 1), 'enable_coroutine' => true, 'hook_flags' => SWOOLE_HOOK_ALL, 'log_level' => SWOOLE_LOG_WARNING]);
$channel = null;
$borrow = static function (Closure $query) use (&$channel): string {
    $statement = $channel->pop();
    try {
        return $query($statement);
    } finally {
        $channel->push($statement);
    }
};
$server->on('workerStart', static function () use (&$channel): void {
    $channel = new Channel(20);
    for ($i = 0; $i < 20; ++$i) {
        $channel->push(people());
    }
});
$server->on('request', static function (Request $request, Response $response) use ($borrow): void {
    $response->header('Content-Type', 'text/plain');
    $response->end(page($request->server['request_uri'], $borrow));
});
$server->start();
