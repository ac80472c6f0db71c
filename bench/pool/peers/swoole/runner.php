#!/usr/bin/env php
<?php

declare(strict_types=1);

// The server of runner.php with Swoole, as its documentation recommends: SWOOLE_BASE, all hooks, queries of a request in coroutines.

use Swoole\Coroutine\WaitGroup;
use Swoole\Http\Request;
use Swoole\Http\Response;
use Swoole\Http\Server;
use Weft\Bench\Pool\Dsn;
use Weft\Bench\Pool\Settings;
use Weft\Bench\Pool\SwooleConnections;

require __DIR__ . '/../../../autoload.php';

$settings = Settings::ofCommandLine($argv);

$url = Dsn::url($settings->text('connection.dsn'), $settings->text('connection.username'), $settings->text('connection.password'));
$connections = null;

$query = static function () use ($settings, &$connections): bool {
    try {
        $connections->sleep($settings->randomSeconds('connection.min_query_duration_sec', 'connection.max_query_duration_sec'));

        return true;
    } catch (Throwable $failure) {
        fwrite(STDERR, $failure::class . ": {$failure->getMessage()}\n");

        return false;
    }
};

/** Keeps the processor busy, after the queries have left: a coroutine runs at once until it waits. */
$compute = static function () use ($settings): bool {
    $end = hrtime(true) + $settings->randomSeconds('scenario.cpu_load_per_request_min_sec', 'scenario.cpu_load_per_request_max_sec') * 1e9;
    while (hrtime(true) < $end) {
        md5(strrev(base64_encode(random_bytes(256))));
    }

    return true;
};

$tasks = array_fill(0, $settings->number('scenario.query_per_request'), $query);
if ($settings->seconds('scenario.cpu_load_per_request_max_sec') > 0.0) {
    $tasks[] = $compute;
}

$scenario = static function () use ($settings, $tasks): bool {
    $worked = true;
    if (!$settings->flag('scenario.parallel_queries_execution')) {
        foreach ($tasks as $task) {
            $worked = $task() && $worked;
        }

        return $worked;
    }
    $group = new WaitGroup(count($tasks));
    foreach ($tasks as $task) {
        go(static function () use ($task, $group, &$worked): void {
            $worked = $task() && $worked;
            $group->done();
        });
    }
    $group->wait();

    return $worked;
};

$server = new Server($settings->text('server.host'), $settings->number('server.port'), SWOOLE_BASE);
$server->set([
    'worker_num' => $settings->number('server.worker_num'),
    'enable_reuse_port' => true,
    'backlog' => $settings->number('server.backlog'),
    'max_connection' => $settings->number('server.max_connection'),
    'worker_max_concurrency' => $settings->number('server.worker_max_concurrency'),
    'hook_flags' => SWOOLE_HOOK_ALL,
    'log_level' => SWOOLE_LOG_WARNING,
]);
$server->on('workerStart', static function () use (&$connections, $url, $settings): void {
    $connections = new SwooleConnections($url, $settings);
});
$server->on('request', static function (Request $request, Response $response) use ($server, $scenario, &$connections): void {
    $status = match ($request->server['request_uri']) {
        '/test' => $connections !== null && $scenario() ? 200 : 500,
        '/shutdown' => 204,
        default => 404,
    };
    $response->status($status);
    $response->end();
    $status === 204 && $server->shutdown();
});
$server->start();
