<?php

declare(strict_types=1);

namespace App;

use App\Entity\Customer;
use Doctrine\DBAL\Configuration;
use Doctrine\DBAL\DriverManager;
use Doctrine\ORM\EntityManager;
use Doctrine\ORM\ORMSetup;
use Doctrine\ORM\Tools\SchemaTool;
use Symfony\Contracts\Service\ResetInterface;
use Weft\Bridge\Doctrine\Middleware;

/**
 * The entity manager of one request. Applications with DoctrineBundle have no such class: the bundle does the same.
 */
final class Entities implements ResetInterface
{
    private ?EntityManager $manager = null;

    public function __construct(private readonly string $path, private readonly bool $onWeft, private readonly string $proxies)
    {
    }

    public function manager(): EntityManager
    {
        if ($this->manager === null) {
            $configuration = new Configuration();
            $configuration->setMiddlewares($this->onWeft ? [new Middleware()] : []);
            $connection = DriverManager::getConnection(['driver' => 'pdo_sqlite', 'path' => $this->path], $configuration);
            $mapping = LazyObjects::of(ORMSetup::createAttributeMetadataConfiguration([__DIR__ . '/Entity'], true, $this->proxies));
            $this->manager = new EntityManager($connection, $mapping);
        }

        return $this->manager;
    }

    /** Makes the tables. */
    public function migrate(): void
    {
        (new SchemaTool($this->manager()))->updateSchema([$this->manager()->getClassMetadata(Customer::class)]);
    }

    public function reset(): void
    {
        $this->manager?->getConnection()->close();
        $this->manager = null;
    }
}
