<?php

declare(strict_types=1);

// The php-service-bus contender of bench/bus: $SERVICE_BUS names a directory with the library and its dependencies in vendor/.

use App\Application;
use App\Progress;

// Its dependencies are older than PHP 8.2, whose deprecations they trigger.
error_reporting(E_ALL & ~E_DEPRECATED);
require environment('SERVICE_BUS') . '/vendor/autoload.php';

spl_autoload_register(static function (string $class): void {
    if (str_starts_with($class, 'App\\')) {
        require __DIR__ . '/src/' . substr($class, 4) . '.php';
    }
});

function environment(string $name): string
{
    $value = getenv($name);

    return $value !== false && $value !== '' ? $value : throw new RuntimeException("the environment variable $name is not set");
}

$total = (int) environment('COMMANDS');
$application = new Application(environment('AMQP_URL'), environment('DATABASE_URL'), environment('BENCH_QUEUE'), getenv('PERSISTENT') === '1');

$started = microtime(true);
$application->fill($total);
$filled = microtime(true);
$progress = new Progress($total);
$application->consume($progress);

echo json_encode([
    'fill_seconds' => $filled - $started,
    'commands_seconds' => $progress->commandsFinished - $filled,
    'events_seconds' => $progress->eventsFinished - $progress->commandsFinished,
    'commands' => $progress->commands,
    'events' => $progress->events,
    'events_overlapped' => $progress->eventsBeforeLastCommand,
], JSON_THROW_ON_ERROR), "\n";
