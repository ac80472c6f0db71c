<?php

declare(strict_types=1);

// The symfony/messenger contender of bench/bus: the component's own bus, AMQP transport and Worker, from Debian's packages.

use App\Application;
use App\Delivery;

require 'Symfony/Component/Messenger/autoload.php';
require 'Symfony/Component/Messenger/Bridge/Amqp/autoload.php';
require 'Symfony/Component/EventDispatcher/autoload.php';
require 'Symfony/Component/Serializer/autoload.php';
require 'Symfony/Component/PropertyAccess/autoload.php';
require 'Symfony/Contracts/Service/autoload.php';
require 'Doctrine/DBAL/autoload.php';

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
$application = new Application(
    environment('AMQP_URL'),
    environment('DATABASE_URL'),
    environment('BENCH_QUEUE'),
    getenv('PERSISTENT') === '1' ? Delivery::Persistent : Delivery::Transient,
    confirms: getenv('MODE') === 'confirmed',
);

$started = microtime(true);
$application->fill($total);
$filled = microtime(true);
$progress = $application->consume($total);

echo json_encode([
    'fill_seconds' => $filled - $started,
    'commands_seconds' => $progress->commandsFinished - $filled,
    'events_seconds' => $progress->eventsFinished - $progress->commandsFinished,
    'commands' => $progress->commands(),
    'events' => $progress->events(),
], JSON_THROW_ON_ERROR), "\n";
