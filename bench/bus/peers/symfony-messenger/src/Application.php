<?php

declare(strict_types=1);

namespace App;

use Doctrine\DBAL\Connection;
use Doctrine\DBAL\DriverManager;
use Symfony\Component\EventDispatcher\EventDispatcher;
use Symfony\Component\Messenger\Bridge\Amqp\Transport\AmqpTransport;
use Symfony\Component\Messenger\Bridge\Amqp\Transport\Connection as AmqpConnection;
use Symfony\Component\Messenger\Handler\HandlersLocator;
use Symfony\Component\Messenger\MessageBus;
use Symfony\Component\Messenger\Middleware\DispatchAfterCurrentBusMiddleware;
use Symfony\Component\Messenger\Middleware\FailedMessageProcessingMiddleware;
use Symfony\Component\Messenger\Middleware\HandleMessageMiddleware;
use Symfony\Component\Messenger\Middleware\RejectRedeliveredMessageMiddleware;
use Symfony\Component\Messenger\Middleware\SendMessageMiddleware;
use Symfony\Component\Messenger\Transport\Sender\SendersLocator;
use Symfony\Component\Messenger\Transport\Serialization\Serializer;
use Symfony\Component\Messenger\Worker;
use Symfony\Contracts\Service\ServiceLocatorTrait;
use Symfony\Contracts\Service\ServiceProviderInterface;

/** What FrameworkBundle wires for one bus and one AMQP transport, without the container. */
final class Application
{
    private const TRANSPORT = 'amqp';
    private const CONFIRM_SECONDS = 30.0;

    private readonly AmqpTransport $transport;
    private readonly MessageBus $bus;
    private readonly StoreCustomerHandler $commands;
    private readonly CustomerStoredHandler $events;

    public function __construct(
        string $amqpUrl,
        string $databaseUrl,
        string $queue,
        private readonly Delivery $delivery,
        bool $confirms,
    ) {
        $options = ['exchange' => ['name' => $queue], 'queues' => [$queue => []]];
        $this->transport = new AmqpTransport(
            AmqpConnection::fromDsn($amqpUrl, $options + ($confirms ? ['confirm_timeout' => self::CONFIRM_SECONDS] : [])),
            Serializer::create(),
        );
        $this->bus = $this->bus();
        $this->commands = new StoreCustomerHandler(
            self::database($databaseUrl),
            $this->bus,
            $delivery,
        );
        $this->events = new CustomerStoredHandler();
    }

    /** Returns when the last command was written to the socket. */
    public function fill(int $commands): void
    {
        for ($i = 0; $i < $commands; ++$i) {
            $this->bus->dispatch(new StoreCustomer(Uuid::v4(), "name_$i", 'name@qwerty.root'), [$this->delivery->stamp()]);
        }
    }

    /** Returns when the last event is acknowledged. */
    public function consume(int $total): Progress
    {
        $progress = new Progress($this->commands, $this->events, $total);
        $dispatcher = new EventDispatcher();
        $dispatcher->addSubscriber($progress);
        (new Worker([self::TRANSPORT => $this->transport], $this->bus, $dispatcher))->run();

        return $progress;
    }

    private static function database(string $url): Connection
    {
        return DriverManager::getConnection([
            'url' => $url,
            'driver' => 'pdo_pgsql',
            // DBAL turns prepared statements on the server off unless told not to.
            'driverOptions' => [\PDO::PGSQL_ATTR_DISABLE_PREPARES => false],
        ]);
    }

    /** FrameworkBundle's default stack without the bus name, which only a program with several buses needs on the wire. */
    private function bus(): MessageBus
    {
        return new MessageBus([
            new RejectRedeliveredMessageMiddleware(),
            new DispatchAfterCurrentBusMiddleware(),
            new FailedMessageProcessingMiddleware(),
            new SendMessageMiddleware($this->senders()),
            new HandleMessageMiddleware(new HandlersLocator([
                StoreCustomer::class => [fn (StoreCustomer $command) => ($this->commands)($command)],
                CustomerStored::class => [fn (CustomerStored $event) => ($this->events)($event)],
            ])),
        ]);
    }

    private function senders(): SendersLocator
    {
        $transports = new class ([self::TRANSPORT => fn () => $this->transport]) implements ServiceProviderInterface {
            use ServiceLocatorTrait;
        };

        return new SendersLocator([
            StoreCustomer::class => [self::TRANSPORT],
            CustomerStored::class => [self::TRANSPORT],
        ], $transports);
    }
}
