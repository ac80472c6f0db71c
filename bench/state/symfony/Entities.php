<?php

declare(strict_types=1);

namespace Weft\Bench\State\Symfony;

use App\LazyObjects;
use Doctrine\DBAL\Configuration;
use Doctrine\DBAL\DriverManager;
use Doctrine\DBAL\Tools\DsnParser;
use Doctrine\ORM\EntityManager;
use Doctrine\ORM\ORMSetup;
use Doctrine\ORM\Tools\SchemaTool;
use Symfony\Contracts\Service\ResetInterface;
use Weft\Bridge\Doctrine\Middleware;

/** The entity manager of a request. */
final class Entities implements ResetInterface
{
    /** By the scheme of the URL. */
    private const DRIVERS = ['sqlite' => 'pdo_sqlite', 'postgres' => 'pdo_pgsql', 'postgresql' => 'pdo_pgsql', 'mysql' => 'pdo_mysql'];

    private ?EntityManager $manager = null;

    public function __construct(private readonly string $url, private readonly string $proxies)
    {
    }

    public function manager(): EntityManager
    {
        if ($this->manager === null) {
            $configuration = new Configuration();
            $configuration->setMiddlewares([new Middleware()]);
            $connection = DriverManager::getConnection((new DsnParser(self::DRIVERS))->parse($this->url), $configuration);
            $mapping = LazyObjects::of(ORMSetup::createAttributeMetadataConfiguration([__DIR__], true, $this->proxies));
            $this->manager = new EntityManager($connection, $mapping);
        }

        return $this->manager;
    }

    /** Makes the table anew. */
    public function migrate(): void
    {
        $tables = [$this->manager()->getClassMetadata(Visit::class)];
        (new SchemaTool($this->manager()))->dropSchema($tables);
        (new SchemaTool($this->manager()))->createSchema($tables);
    }

    public function reset(): void
    {
        $this->manager?->getConnection()->close();
        $this->manager = null;
    }
}
