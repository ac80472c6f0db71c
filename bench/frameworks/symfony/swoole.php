<?php

declare(strict_types=1);

// Swoole with all its hooks and SLOTS kernels, each with one request at a time. Superglobals and statics are shared, as they are there.

use Swoole\Coroutine\Channel;
use Swoole\Http\Request;
use Swoole\Http\Response;
use Swoole\Http\Server;
use Symfony\Component\HttpFoundation\Request as Message;
use Weft\Bench\Frameworks\Symfony\Kernel;

require __DIR__ . '/autoload.php';

Swoole\Coroutine::set(['hook_flags' => SWOOLE_HOOK_ALL]);
$server = new Server('127.0.0.1', (int) getenv('PORT'), SWOOLE_BASE);
$server->set(['worker_num' => 1, 'enable_coroutine' => true, 'hook_flags' => SWOOLE_HOOK_ALL, 'log_level' => SWOOLE_LOG_WARNING]);
$kernels = null;
$server->on('workerStart', static function () use (&$kernels): void {
    $slots = (int) getenv('SLOTS');
    $kernels = new Channel($slots);
    for ($slot = 0; $slot < $slots; $slot++) {
        $kernels->push(new Kernel('prod', false));
    }
});
$server->on('request', static function (Request $request, Response $response) use (&$kernels): void {
    $kernel = $kernels->pop();
    try {
        $message = Message::create($request->server['request_uri'], $request->server['request_method']);
        $answer = $kernel->handle($message);
        $response->status($answer->getStatusCode());
        foreach ($answer->headers->allPreserveCase() as $name => $values) {
            $response->header($name, $values);
        }
        $response->end((string) $answer->getContent());
        $kernel->terminate($message, $answer);
        $kernel->boot();
    } finally {
        $kernels->push($kernel);
    }
});
$server->start();
