<?php

declare(strict_types=1);

// The pure PHP contender of bench/bus: ext-amqp and PDO, one message after the other, no framework.

require __DIR__ . '/Customers.php';

function environment(string $name): string
{
    $value = getenv($name);

    return $value !== false && $value !== '' ? $value : throw new RuntimeException("the environment variable $name is not set");
}

function connectBroker(string $url): AMQPConnection
{
    $parts = parse_url($url);
    $connection = new AMQPConnection([
        'host' => $parts['host'],
        'port' => $parts['port'] ?? 5672,
        'vhost' => rawurldecode(ltrim($parts['path'] ?? '/', '/')) ?: '/',
        'login' => rawurldecode($parts['user']),
        'password' => rawurldecode($parts['pass']),
    ]);
    $connection->connect();

    return $connection;
}

function connectDatabase(string $url): PDO
{
    $parts = parse_url($url);
    parse_str($parts['query'] ?? '', $options);
    $dsn = sprintf(
        'pgsql:host=%s;port=%d;dbname=%s;sslmode=%s',
        $parts['host'],
        $parts['port'] ?? 5432,
        ltrim($parts['path'], '/'),
        $options['sslmode'] ?? 'prefer',
    );

    return new PDO($dsn, rawurldecode($parts['user']), rawurldecode($parts['pass']), [
        PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION,
        PDO::ATTR_EMULATE_PREPARES => false,
    ]);
}

$customers = new Customers(
    connectBroker(environment('AMQP_URL')),
    getenv('MODE') === 'confirmed' ? connectBroker(environment('AMQP_URL')) : null,
    connectDatabase(environment('DATABASE_URL')),
    queueName: environment('BENCH_QUEUE'),
    total: (int) environment('COMMANDS'),
    persistent: getenv('PERSISTENT') === '1',
);

$started = microtime(true);
$customers->fill();
$filled = microtime(true);
$customers->drain();

echo json_encode([
    'fill_seconds' => $filled - $started,
    'commands_seconds' => $customers->commandsFinished - $filled,
    'events_seconds' => $customers->eventsFinished - $customers->commandsFinished,
    'commands' => $customers->commands,
    'events' => $customers->events,
], JSON_THROW_ON_ERROR), "\n";
