<?php

declare(strict_types=1);

namespace Weft\Tests\Bridge\Symfony;

use Doctrine\DBAL\Connection;
use Doctrine\DBAL\DriverManager;
use Doctrine\Persistence\ConnectionRegistry;
use Symfony\Component\DependencyInjection\ContainerInterface;
use Weft\Bridge\Doctrine\Driver;

/** The service `doctrine` as DoctrineBundle makes it: connections are services of the container. */
final class Connections implements ConnectionRegistry
{
    /** @param array<string, string> $services of connections, by name */
    public function __construct(private readonly ContainerInterface $container, private readonly array $services)
    {
    }

    public static function connect(string $file): Connection
    {
        return DriverManager::getConnection(['driver' => 'pdo_sqlite', 'path' => $file, 'driverClass' => Driver::class]);
    }

    public function getDefaultConnectionName(): string
    {
        return (string) \array_key_first($this->services);
    }

    /** @param string|null $name */
    public function getConnection($name = null): object
    {
        $connection = $this->container->get($this->services[$name ?? $this->getDefaultConnectionName()]);
        \assert($connection !== null);

        return $connection;
    }

    /** @return array<string, object> */
    public function getConnections(): array
    {
        return \array_map(fn(string $service): object => $this->container->get($service) ?? throw new \LogicException("no service $service"), $this->services);
    }

    /** @return array<string, string> */
    public function getConnectionNames(): array
    {
        return $this->services;
    }
}
