<?php

declare(strict_types=1);

// Swoole with all its hooks and SLOTS kernels, each with one request at a time. It converts messages as the package runtime/swoole does, and ends a
// request as the other systems do: terminate() after the response, then the reset of the services. Superglobals, statics and header() are those of
// the process: a request sees what another one left there.

use Swoole\Coroutine\Channel;
use Swoole\Http\Request;
use Swoole\Http\Response;
use Swoole\Http\Server;
use Symfony\Component\HttpFoundation\HeaderBag;
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
        $message = new Message(
            $request->get ?? [],
            $request->post ?? [],
            [],
            $request->cookie ?? [],
            $request->files ?? [],
            array_change_key_case($request->server ?? [], CASE_UPPER),
            $request->rawContent(),
        );
        $message->headers = new HeaderBag($request->header ?? []);
        $answer = $kernel->handle($message);
        foreach ($answer->headers->all() as $name => $values) {
            $response->header($name, $values);
        }
        $response->status($answer->getStatusCode());
        $response->end((string) $answer->getContent());
        $kernel->terminate($message, $answer);
        $kernel->boot();
    } finally {
        $kernels->push($kernel);
    }
});
$server->start();
