<?php

declare(strict_types=1);

// Weft in bench/bus: the workload of the peers in one process, on RabbitMQ and PostgreSQL, on PostgreSQL or on SQLite alone.

namespace Weft\Bench\Bus\Weft;

use Weft\Bus\Bus;
use Weft\Bus\BusOptions;
use Weft\Bus\ConsumeOptions;
use Weft\Bus\DeliveryGuarantee;
use Weft\Bus\SendOptions;
use Weft\Bus\Transport;
use Weft\Bus\Transport\Postgres;
use Weft\Bus\Transport\RabbitMq;
use Weft\Bus\Transport\RabbitMqQueue;
use Weft\Bus\Transport\Sqlite;
use Weft\Sql\Database;
use Weft\Pool\PoolOptions;

use function Weft\run;

require __DIR__ . '/../../../autoload.php';
require __DIR__ . '/StoreCustomer.php';
require __DIR__ . '/CustomerStored.php';
require __DIR__ . '/Customers.php';
require __DIR__ . '/CustomerBatches.php';

const CONCURRENCY = 100;
const POOL_SIZE = 20;
/** Far below the 10,000 of the Go contender, enough that the broker never waits for acknowledgements. */
const PREFETCH = 500;

function environment(string $name): string
{
    $value = \getenv($name);

    return $value !== false && $value !== '' ? $value : throw new \RuntimeException("the environment variable {$name} is not set");
}

function transport(Database $database, DeliveryGuarantee $guarantee): Transport
{
    // Who wants exactly one effect wants the queue that RabbitMQ recommends for messages that must not get lost.
    $queue = $guarantee === DeliveryGuarantee::Transactional ? RabbitMqQueue::quorum() : RabbitMqQueue::classic();

    return match (environment('TRANSPORT')) {
        'sqlite' => Sqlite::on($database),
        'postgres' => Postgres::connect(environment('DATABASE_URL')),
        'rabbitmq' => RabbitMq::connect(environment('AMQP_URL'), persistent: \getenv('PERSISTENT') === '1', queue: $queue),
    };
}

/** @return iterable<StoreCustomer> */
function commands(int $total): iterable
{
    for ($i = 0; $i < $total; ++$i) {
        yield new StoreCustomer(uuid(), "name_{$i}", 'name@qwerty.root');
    }
}

function uuid(): string
{
    $bytes = \random_bytes(16);
    $bytes[6] = \chr(\ord($bytes[6]) & 0x0F | 0x40);
    $bytes[8] = \chr(\ord($bytes[8]) & 0x3F | 0x80);

    return \vsprintf('%s%s-%s-%s-%s-%s%s%s', \str_split(\bin2hex($bytes), 4));
}

run(static function (): void {
    $total = (int) environment('COMMANDS');
    $isPlain = \in_array(environment('MODE'), ['plain', 'batch'], true);
    $queue = \getenv('BENCH_QUEUE') ?: 'customers';
    $database = Database::connect(environment('DATABASE_URL'), new PoolOptions(size: (int) (\getenv('POOL_SIZE') ?: POOL_SIZE)));
    $customers = \str_starts_with(environment('MODE'), 'batch') ? new CustomerBatches($total) : new Customers($total);
    $guarantee = match (environment('MODE')) {
        'plain' => DeliveryGuarantee::BestEffort,
        'confirmed' => DeliveryGuarantee::AtLeastOnce,
        'safe', 'batch-safe' => DeliveryGuarantee::Transactional,
        'batch' => DeliveryGuarantee::BestEffort,
    };
    $bus = Bus::connect(transport($database, $guarantee), $database, new BusOptions(guarantee: $guarantee))->handlers($customers);
    $bus->queue($queue)->declare();

    $started = \microtime(true);
    $bus->sendAll(commands($total), new SendOptions(confirm: !$isPlain));
    $filled = \microtime(true);
    $concurrency = (int) (\getenv('CONCURRENCY') ?: CONCURRENCY);
    $bus->consume($queue, concurrency: $concurrency, options: new ConsumeOptions(prefetch: \max(PREFETCH, $concurrency), limit: 2 * $total));
    $drained = \microtime(true);

    echo \json_encode([
        'fill_seconds' => $filled - $started,
        'commands_seconds' => $customers->lastCommandAt - $filled,
        'events_seconds' => $drained - $customers->lastCommandAt,
        'commands' => $customers->commands,
        'events' => $customers->events,
        'events_overlapped' => $customers->eventsBeforeLastCommand,
        'queued' => $bus->queue($queue)->depth() + $bus->queue($queue)->deadLetters()->count(),
    ], \JSON_THROW_ON_ERROR), "\n";
    $bus->close();
    $database->close();
});
